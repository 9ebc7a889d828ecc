import type { Operation } from '@pool/contract'
import type * as z from 'zod'
import { type AttemptFailure, parseRetryAfter } from './domain/retry.ts'
import { findSecrets, redactSecrets } from './domain/secrets.ts'
import { type CallFailure, type ClientError, NoResponseError } from './errors.ts'
import { type AttemptInfo, notify } from './hooks.ts'
import type { ClientOptions } from './options.ts'
import { type RequestParts, toBody, toHeaders } from './request.ts'
import { readResponse } from './response.ts'
import type { Timing } from './timing.ts'

/** The response of one request that is a result. */
export interface AttemptResult {
  readonly status: number
  readonly headers: Headers
  readonly body: unknown
}

/** How one request ended. */
export type AttemptOutcome =
  | { readonly kind: 'result'; readonly result: AttemptResult }
  | {
      readonly kind: 'failure'
      readonly failure: AttemptFailure
      readonly toError: (failure: CallFailure) => ClientError
    }

export interface AttemptRequest {
  readonly operation: Operation
  readonly url: string
  readonly parts: RequestParts
  readonly info: AttemptInfo
  readonly signal: AbortSignal | undefined
  /** Milliseconds until the response begins. */
  readonly headersMs: number
  /** Milliseconds until the response ends, from the start of the request. A stream has no such limit. */
  readonly bodyMs: number
}

/** The reason of an abort by the timer. */
const expired = new Error('expired')

/** Limits one request in time, and ends it when the caller does. */
class AttemptLimit {
  readonly #controller = new AbortController()
  readonly #timing: Timing
  readonly #caller: AbortSignal | undefined
  #cancelTimer: () => void = () => undefined
  readonly #startedAt: number
  #endsAt: number
  #reject: (reason: unknown) => void = () => undefined
  readonly #onAbort = (): void => this.#abort(this.#caller?.reason)
  /** Rejects when the request has to end, even if `fetch` ignores its signal. */
  readonly end: Promise<never>

  constructor(timing: Timing, caller: AbortSignal | undefined, ms: number) {
    this.#timing = timing
    this.#caller = caller
    this.#startedAt = timing.now()
    this.#endsAt = this.#startedAt + ms
    caller?.addEventListener('abort', this.#onAbort, { once: true })
    this.end = new Promise((_, reject) => {
      this.#reject = reject
    })
    this.#schedule(ms)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  #abort(reason: unknown): void {
    this.#controller.abort(reason)
    this.#reject(reason)
  }

  /** The request may take `ms` from its start. The timer stays, since a second one would cost every request more. */
  extend(ms: number): void {
    this.#endsAt = this.#startedAt + ms
  }

  #schedule(ms: number): void {
    this.#cancelTimer = this.#timing.schedule(ms, () => {
      const restMs = this.#endsAt - this.#timing.now()
      if (restMs > 0) this.#schedule(restMs)
      else this.#abort(expired)
    })
  }

  stopTimer(): void {
    this.#cancelTimer()
  }

  release(): void {
    this.#cancelTimer()
    this.#caller?.removeEventListener('abort', this.#onAbort)
  }
}

/** The message and the code of what `fetch` threw. Node has the actual reason in `cause`. */
const describeFailure = (thrown: unknown): { text: string; reasonCode: string | undefined } => {
  const error = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return {
    text: (error instanceof Error && error.message) || 'the request failed',
    reasonCode: typeof code === 'string' ? code : undefined,
  }
}

/** Creates the function that sends one request. It throws only a TypeError, what `token` throws, and the abort's reason. */
export const createAttempt = (options: ClientOptions, problem: z.ZodType, timing: Timing) => {
  const { token, hooks = {} } = options
  const send: typeof fetch = options.fetch ?? ((input, init) => fetch(input, init))

  return async (request: AttemptRequest): Promise<AttemptOutcome> => {
    const { operation, url, parts, info, signal, headersMs, bodyMs } = request
    signal?.throwIfAborted()
    const limit = new AttemptLimit(timing, signal, headersMs)
    let bearer: string | undefined
    const redact = (text: string): string =>
      redactSecrets(text, [
        ...Object.values(options.headers ?? {}),
        ...findSecrets(parts.headers),
        ...findSecrets(parts.body),
        ...(bearer === undefined ? [] : [bearer]),
      ])
    let isSent = false
    let isStream = false

    const toNoResponse =
      (text: string, reasonCode?: string) =>
      (failure: CallFailure): ClientError =>
        new NoResponseError(failure, { text: redact(text), reasonCode })

    /** Ends with the reason of the caller's signal, or with a NoResponseError if the connection ends early. */
    async function* readChunks(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void> {
      const reader = body.getReader()
      try {
        for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value
      } catch (thrown) {
        signal?.throwIfAborted()
        const { text, reasonCode } = describeFailure(thrown)
        throw toNoResponse(text, reasonCode)({ ...info, attempts: info.attempt, isOutcomeUnknown: false })
      } finally {
        // It may have failed already, which was thrown above.
        await reader.cancel().catch(() => undefined)
        limit.release()
      }
    }

    const run = async (): Promise<AttemptOutcome> => {
      bearer = typeof token === 'function' ? await token() : token
      const body = toBody(operation, parts.body)
      const headers = {
        ...notify(hooks.onAttempt, info),
        ...(body === undefined ? {} : { 'Content-Type': operation.body?.mediaType ?? 'application/json' }),
        ...toHeaders(operation, { ...options.headers, ...parts.headers }),
        ...(bearer === undefined ? {} : toHeaders(operation, { Authorization: `Bearer ${bearer}` })),
        'X-Request-Id': info.requestId,
      }
      const init = {
        method: operation.method.toUpperCase(),
        headers,
        // Secrets in headers must not follow a redirect to another host.
        redirect: 'manual',
        signal: limit.signal,
        ...(body === undefined ? {} : { body }),
        ...(body instanceof ReadableStream ? { duplex: 'half' as const } : {}),
      } as const
      isSent = true
      const response = await send(url, init)
      limit.extend(bodyMs)
      const retryAfterMs = parseRetryAfter(response.headers.get('Retry-After'), timing.wallNow())
      const retryAfter = retryAfterMs === undefined ? undefined : retryAfterMs / 1_000
      const reading = await readResponse(response, operation, { problem, retryAfter, redact })
      const { status } = response
      if (reading.kind === 'error') {
        const { code, toError } = reading
        const failure: AttemptFailure = {
          kind: 'response',
          status,
          ...(code === undefined ? {} : { code }),
          ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
        }
        return { kind: 'failure', failure, toError }
      }
      isStream = reading.kind === 'stream'
      if (isStream) limit.stopTimer()
      const content = reading.kind === 'stream' ? readChunks(reading.body) : reading.body
      return { kind: 'result', result: { status, headers: response.headers, body: content } }
    }

    try {
      return await Promise.race([run(), limit.end])
    } catch (thrown) {
      signal?.throwIfAborted()
      const failure = { kind: 'no-response' } as const
      if (limit.signal.aborted) return { kind: 'failure', failure, toError: toNoResponse('the request took too long') }
      if (!isSent) throw thrown
      const { text, reasonCode } = describeFailure(thrown)
      return { kind: 'failure', failure, toError: toNoResponse(text, reasonCode) }
    } finally {
      if (!isStream) limit.release()
    }
  }
}

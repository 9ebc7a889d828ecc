import type { Operation } from '@pool/contract'
import { type AttemptFailure, parseRetryAfter } from './domain/retry.ts'
import { findSecrets, redactSecrets } from './domain/secrets.ts'
import { type CallFailure, type ClientError, NoResponseError } from './errors.ts'
import { type AttemptInfo, notify } from './hooks.ts'
import type { ClientOptions, Service } from './options.ts'
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

interface FailureDescription {
  readonly text: string
  readonly reasonCode?: string | undefined
}

/** The message and the code of what `fetch` threw. Node has the actual reason in `cause`. */
const describeFailure = (thrown: unknown): FailureDescription => {
  const error = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return {
    text: (error instanceof Error && error.message) || 'the request failed',
    reasonCode: typeof code === 'string' ? code : undefined,
  }
}

/** What all requests of a client have in common. */
export interface AttemptContext {
  readonly options: ClientOptions
  readonly service: Service
  readonly timing: Timing
}

/** One request, from the token to the end of the response. */
export class Attempt {
  readonly #context: AttemptContext
  readonly #request: AttemptRequest
  readonly #limit: AttemptLimit
  #bearer: string | undefined

  constructor(context: AttemptContext, request: AttemptRequest) {
    this.#context = context
    this.#request = request
    this.#limit = new AttemptLimit(context.timing, request.signal, request.headersMs)
  }

  /** Throws only a TypeError, what `token` throws, and the reason of the caller's signal. */
  async run(): Promise<AttemptOutcome> {
    try {
      return await Promise.race([this.#send(), this.#limit.end])
    } catch (thrown) {
      this.#limit.release()
      // What `token` or a header throws before the request is sent is not a failure of the request.
      if (this.#limit.signal.aborted) return this.#toFailure(thrown)
      throw thrown
    }
  }

  async #send(): Promise<AttemptOutcome> {
    const init = await this.#prepare()
    return this.#exchange(init).catch(thrown => this.#toFailure(thrown))
  }

  async #prepare(): Promise<RequestInit> {
    const { operation, parts, info } = this.#request
    const { token, headers, hooks = {} } = this.#context.options
    this.#bearer = typeof token === 'function' ? await token() : token
    const body = toBody(operation, parts.body)
    return {
      method: operation.method.toUpperCase(),
      headers: {
        ...notify(hooks.onAttempt, info),
        ...(body === undefined ? {} : { 'Content-Type': operation.body?.mediaType ?? 'application/json' }),
        ...toHeaders(operation, { ...headers, ...parts.headers }),
        ...(this.#bearer === undefined ? {} : toHeaders(operation, { Authorization: `Bearer ${this.#bearer}` })),
        'X-Request-Id': info.requestId,
      },
      // Secrets in headers must not follow a redirect to another host.
      redirect: 'manual',
      signal: this.#limit.signal,
      ...(body === undefined ? {} : { body }),
      ...(body instanceof ReadableStream ? { duplex: 'half' as const } : {}),
    }
  }

  async #exchange(init: RequestInit): Promise<AttemptOutcome> {
    const { operation, url, bodyMs } = this.#request
    const { options, service, timing } = this.#context
    const send: typeof fetch = options.fetch ?? ((input, init) => fetch(input, init))
    const response = await send(url, init)
    this.#limit.extend(bodyMs)
    const { status, headers } = response
    const retryAfterMs = parseRetryAfter(headers.get('Retry-After'), timing.wallNow())
    const reading = await readResponse(response, operation, {
      service,
      retryAfter: retryAfterMs === undefined ? undefined : retryAfterMs / 1_000,
      redact: text => this.#redact(text),
    })
    if (reading.kind === 'stream') this.#limit.stopTimer()
    else this.#limit.release()
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
    const body = reading.kind === 'stream' ? this.#readChunks(reading.body) : reading.body
    return { kind: 'result', result: { status, headers, body } }
  }

  /** Ends with the reason of the caller's signal, or with a NoResponseError if the connection ends early. */
  async *#readChunks(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    const { signal, info } = this.#request
    const reader = body.getReader()
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value
    } catch (thrown) {
      signal?.throwIfAborted()
      throw this.#toNoResponse(describeFailure(thrown), {
        ...info,
        attempts: info.attempt,
        isOutcomeUnknown: false,
      })
    } finally {
      // It may have failed already, which was thrown above.
      await reader.cancel().catch(() => undefined)
      this.#limit.release()
    }
  }

  /** Throws the reason of the caller's signal. */
  #toFailure(thrown: unknown): AttemptOutcome {
    this.#limit.release()
    this.#request.signal?.throwIfAborted()
    const isLate = this.#limit.signal.aborted
    const description: FailureDescription = isLate ? { text: 'the request took too long' } : describeFailure(thrown)
    return {
      kind: 'failure',
      failure: { kind: 'no-response', reasonCode: description.reasonCode },
      toError: failure => this.#toNoResponse(description, failure),
    }
  }

  #toNoResponse({ text, reasonCode }: FailureDescription, failure: CallFailure): NoResponseError {
    return new NoResponseError(failure, { text: this.#redact(text), reasonCode })
  }

  #redact(text: string): string {
    const { parts } = this.#request
    return redactSecrets(text, [
      ...Object.values(this.#context.options.headers ?? {}),
      ...findSecrets(parts.headers),
      ...findSecrets(parts.body),
      ...(this.#bearer === undefined ? [] : [this.#bearer]),
    ])
  }
}

import type { Operation } from '@pool/contract'
import type * as z from 'zod'
import { type CallFailure, type ClientError, type ErrorBody, ProblemError, UnexpectedResponseError } from './errors.ts'
import type { StreamMediaType } from './operation-types.ts'
import type { Service } from './options.ts'

/** What a response means: a result; or an error, which needs the facts of its call. */
export type Reading =
  | { readonly kind: 'result'; readonly body: unknown }
  | { readonly kind: 'stream'; readonly body: ReadableStream<Uint8Array> }
  | {
      readonly kind: 'error'
      readonly code: string | undefined
      toError(failure: CallFailure): ClientError
    }

export interface ReadOptions {
  readonly service: Service
  /** Seconds. */
  readonly retryAfter: number | undefined
  /** Removes the secrets of the call from the text of an error response, which a proxy may have written. */
  redact(text: string): string
}

const STREAMS: readonly string[] = ['text/event-stream', 'application/x-ndjson'] satisfies readonly StreamMediaType[]

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

const parseJson = (text: string): { readonly value: unknown } | null => {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return null
  }
}

/** Where a value does not fit its schema, without the value. */
const toReason = ({ issues }: z.core.$ZodError): string => {
  const [issue] = issues
  const path = issue?.path.map(String).join('.') || 'the body'
  return `${path} does not have the documented form: ${issue?.code ?? 'invalid'}`
}

const readError = (status: number, text: string, { service, retryAfter }: ReadOptions): Reading => {
  const json = parseJson(text)?.value
  const isProblem = service.problem.safeParse(json).success
  if (isProblem && service.isOwn(json as ErrorBody)) {
    const body = json as ErrorBody
    return {
      kind: 'error',
      code: body.error,
      toError: failure => new ProblemError(failure, { status, body, retryAfter }),
    }
  }
  const { error, detail } = isObject(json) ? json : {}
  const code = typeof error === 'string' ? error : undefined
  const unknown = code === undefined ? 'the body is not an error of the service' : 'an unknown error'
  const reason = isProblem ? 'baseUrl is of another service or listener, or has a wrong path' : unknown
  return {
    kind: 'error',
    code,
    toError: failure =>
      new UnexpectedResponseError(failure, {
        status,
        code,
        detail: typeof detail === 'string' ? detail : undefined,
        retryAfter,
        reason,
      }),
  }
}

const unexpected = (status: number, retryAfter: number | undefined, reason: string): Reading => ({
  kind: 'error',
  code: undefined,
  toError: failure =>
    new UnexpectedResponseError(failure, { status, code: undefined, detail: undefined, retryAfter, reason }),
})

/**
 * Reads a response and validates it with the schema that its operation has for the status. A result is returned as it is:
 * fields that a later version of the service adds are kept. Rejects if the connection ends before the body does.
 */
export const readResponse = async (
  response: Response,
  operation: Operation,
  options: ReadOptions,
): Promise<Reading> => {
  const { status } = response
  const spec = operation.results[status]
  if (spec === undefined) {
    if (status < 400) {
      await response.body?.cancel()
      return unexpected(status, options.retryAfter, 'the operation does not have this status')
    }
    return readError(status, options.redact(await response.text()), options)
  }
  const { schema, mediaType = 'application/json' } = spec
  if (schema === undefined) {
    await response.body?.cancel()
    return { kind: 'result', body: undefined }
  }
  const type = response.headers.get('Content-Type') ?? ''
  if (!type.toLowerCase().startsWith(mediaType)) {
    await response.body?.cancel()
    return unexpected(status, options.retryAfter, `the body is not ${mediaType}`)
  }
  if (STREAMS.includes(mediaType) && response.body !== null) return { kind: 'stream', body: response.body }
  const text = await response.text()
  if (mediaType !== 'application/json') return { kind: 'result', body: text }
  const json = parseJson(text)
  if (json === null) return unexpected(status, options.retryAfter, 'the body is not JSON')
  const { success, error } = schema.safeParse(json.value)
  return success ? { kind: 'result', body: json.value } : unexpected(status, options.retryAfter, toReason(error))
}

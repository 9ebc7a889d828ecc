import { type IncomingMessage, request as requestHttp } from 'node:http'
import { Agent, request as requestHttps } from 'node:https'
import { proxyEnv } from '../lib/proxy.ts'
import type { Unavailable } from './domain/result.ts'

export interface ProviderRequest {
  readonly url: URL
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
}

export interface ProviderResponse {
  readonly kind: 'answered'
  readonly status: number
  /** The body as JSON; undefined: it is not JSON. */
  readonly body: unknown
  readonly retryAfterMs?: number
}

/** Larger than any valid response of a provider's API. */
const MAX_RESPONSE_BYTES = 64 * 1_024 * 1_024

/** Milliseconds of a Retry-After (RFC 9110 section 10.2.3), in seconds or as a date; undefined: absent or invalid. */
export const parseRetryAfter = (header: string | null, now: number): number | undefined => {
  const text = header?.trim() ?? ''
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000
  const at = /^[A-Za-z]/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A response whose body is not read yet. */
export interface StreamedResponse {
  readonly kind: 'streamed'
  readonly body: AsyncIterable<Uint8Array>
  /** Octets of the body; undefined: the server did not state it. */
  readonly length: number | undefined
}

/** The body; undefined: it is larger than MAX_RESPONSE_BYTES. */
const readText = async (body: AsyncIterable<Uint8Array>): Promise<string | undefined> => {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.byteLength
    if (size > MAX_RESPONSE_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** The system's error code of an error, or below an error of fetch(). Never its text, which may quote the URL. */
const toErrorCode = (error: unknown): string => {
  const cause = error instanceof Error ? (error.cause ?? error) : undefined
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  return typeof code === 'string' && /^[A-Z0-9_]+$/.test(code) ? code : 'no connection'
}

async function* emptyBody(): AsyncGenerator<Uint8Array> {}

const toHeaders = ({ headers = {}, body }: ProviderRequest): Record<string, string> => ({
  Accept: 'application/json',
  ...(body ? { 'Content-Type': 'application/json' } : {}),
  ...headers,
})

/** The reason for an error of a request or of its body. It does not contain the URL, its query or a header. */
export const toUnavailable = (error: unknown, signal: AbortSignal): Unavailable => ({
  kind: 'unavailable',
  reason: signal.aborted
    ? 'The DNS provider did not answer in time.'
    : `The DNS provider could not be reached (${toErrorCode(error)}).`,
})

const send = (request: ProviderRequest, signal: AbortSignal): Promise<Response> => {
  const { url, method = 'GET', body } = request
  return fetch(url, {
    method,
    headers: toHeaders(request),
    ...(body ? { body: JSON.stringify(body) } : {}),
    redirect: 'manual',
    signal,
  })
}

/**
 * Not with fetch(): in Node 24, it ends the process if the server closes the connection while the reader of the body is
 * slower than the server (an assertion of undici). On a connection of its own, because the reader may abandon the body.
 */
const sendStreaming = (request: ProviderRequest, signal: AbortSignal): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const [start, agent] =
      request.url.protocol === 'https:' ? [requestHttps, new Agent({ proxyEnv })] : [requestHttp, false]
    start(request.url, { headers: toHeaders(request), agent, signal }, resolve)
      .on('error', reject)
      .end()
  })

/** Closes the connection if the reader abandons the body, even before its first read. */
const toBody = (response: IncomingMessage): AsyncIterable<Uint8Array> => ({
  [Symbol.asyncIterator]() {
    const chunks: AsyncIterator<Uint8Array> = response[Symbol.asyncIterator]()
    return {
      next: () => chunks.next(),
      async return() {
        response.destroy()
        return { done: true, value: undefined }
      },
    }
  },
})

const readJson = async (
  status: number,
  retryAfter: string | null,
  body: AsyncIterable<Uint8Array>,
): Promise<ProviderResponse | Unavailable> => {
  const text = await readText(body)
  // Another zone, or fewer names, can have a response of an acceptable size.
  if (text === undefined)
    return { kind: 'unavailable', reason: 'The response of the DNS provider is too large.', scope: 'zone' }
  const pause = parseRetryAfter(retryAfter, Date.now())
  const known = { kind: 'answered', status, body: parseJson(text) } as const
  return pause === undefined ? known : { ...known, retryAfterMs: pause }
}

/**
 * Sends one request to a provider's HTTP API. A network error is `unavailable`; its reason does not contain the URL, its
 * query or a header, because they hold keys. Redirects are not followed: the keys would go to another host.
 */
export const requestJson = async (
  request: ProviderRequest,
  signal: AbortSignal,
): Promise<ProviderResponse | Unavailable> => {
  try {
    const { status, headers, body } = await send(request, signal)
    return await readJson(status, headers.get('Retry-After'), body ?? emptyBody())
  } catch (error) {
    return toUnavailable(error, signal)
  }
}

/** As `requestJson` with GET, but the body of a response with status 200 can have any size. Reading it can throw. */
export const requestStream = async (
  request: ProviderRequest,
  signal: AbortSignal,
): Promise<StreamedResponse | ProviderResponse | Unavailable> => {
  try {
    const response = await sendStreaming(request, signal)
    const { statusCode = 0, headers } = response
    const body = toBody(response)
    if (statusCode !== 200) return await readJson(statusCode, headers['retry-after'] ?? null, body)
    const length = Number(headers['content-length'] ?? Number.NaN)
    return { kind: 'streamed', body, length: Number.isNaN(length) ? undefined : length }
  } catch (error) {
    return toUnavailable(error, signal)
  }
}

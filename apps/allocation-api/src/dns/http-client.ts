import type { Unavailable } from './domain/result.ts'

export interface HttpRequest {
  readonly url: URL
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly body?: unknown
}

export interface HttpResponse {
  readonly kind: 'answered'
  readonly status: number
  /** The body as JSON; undefined: it is none. */
  readonly body: unknown
  readonly retryAfterMs?: number
}

/** Larger than any answer of a provider's API that is one. */
const MAX_RESPONSE_BYTES = 64 * 1_024 * 1_024

/** Milliseconds of a Retry-After (RFC 9110 section 10.2.3), in seconds or as a date; undefined: it says nothing. */
export const parseRetryAfter = (header: string | null, now: number): number | undefined => {
  const text = header?.trim() ?? ''
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000
  const at = /^[A-Za-z]/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** At most so many bytes of a body; undefined: it has more. */
const textOf = async (response: Response): Promise<string | undefined> => {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength
    if (size > MAX_RESPONSE_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Of an error of fetch(): the code of what failed below it. Never its text, which may quote the URL. */
const codeOf = (error: unknown): string => {
  const cause = error instanceof Error ? error.cause : undefined
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  return typeof code === 'string' && /^[A-Z0-9_]+$/.test(code) ? code : 'no connection'
}

/**
 * One exchange with a provider's HTTP API. What goes wrong on the way is `unavailable`, told without the URL, its query
 * or a header: keys are in them. Redirects are not followed, for they would take the keys along.
 */
export const requestJson = async (
  { url, method = 'GET', headers = {}, body }: HttpRequest,
  signal: AbortSignal,
): Promise<HttpResponse | Unavailable> => {
  try {
    const response = await fetch(url, {
      method,
      headers: { Accept: 'application/json', ...(body ? { 'Content-Type': 'application/json' } : {}), ...headers },
      ...(body ? { body: JSON.stringify(body) } : {}),
      redirect: 'manual',
      signal,
    })
    const text = await textOf(response)
    if (text === undefined) return { kind: 'unavailable', reason: 'The answer of the DNS provider is too large.' }
    const pause = parseRetryAfter(response.headers.get('Retry-After'), Date.now())
    const known = { kind: 'answered', status: response.status, body: jsonOf(text) } as const
    return pause === undefined ? known : { ...known, retryAfterMs: pause }
  } catch (error) {
    const reason = signal.aborted
      ? 'The DNS provider did not answer in time.'
      : `The DNS provider could not be reached (${codeOf(error)}).`
    return { kind: 'unavailable', reason }
  }
}

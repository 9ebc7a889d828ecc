import { BodyError, type BodyFailure, isEncoded } from '@pool/runtime/service/body-error'
import { explainUnknownParameter } from '@pool/runtime/spelling'
import type { Context } from 'hono'
import { createMiddleware } from 'hono/factory'
import type { RequestError } from '../lease/request.ts'
import { isLogged, type WitnessLogLevel } from '../log.ts'
import type { WitnessSettings } from '../settings.ts'
import { errorResponse, logRequest } from './errors.ts'
import type { Services, WitnessHttpEnv } from './types.ts'

/** Not the path of any valid request: every path starts with a slash. */
const INVALID_PATH = ''

/**
 * The path, still percent-encoded: routing must distinguish `%2F` from `/`, and a slot is decoded exactly once. An invalid
 * `Host` makes `request.url` unparseable. Hono would throw on it, and the platform would respond with a bare 500.
 */
export const rawPath = (request: Request): string => URL.parse(request.url)?.pathname ?? INVALID_PATH

/** An id from the client is kept if it is safe in a log line and in a header. */
const SAFE_REQUEST_ID = /^[A-Za-z0-9._:/+=@-]{1,128}$/
/** No slot is longer. A longer header is not logged at all, because a truncated token could not be redacted. */
const MAX_LOGGED_HEADER_LENGTH = 506

const toLoggedHeader = (header: string | undefined): string | undefined =>
  header === undefined || header.length <= MAX_LOGGED_HEADER_LENGTH ? header : `<${header.length} characters>`

/** More parts do not occur by mistake, and each one costs time. */
const MAX_SECRETS = 4

/** Also the parts of a header that is not a bearer token: a client may have sent a token with the wrong scheme. */
const toSecrets = (authorization: string | undefined): readonly string[] =>
  authorization?.split(/[\s,]+/, MAX_SECRETS) ?? []

const toLevel = (status: number, isRoutine: boolean | undefined): WitnessLogLevel => {
  if (status >= 500) return 'error'
  return isRoutine ? 'debug' : 'info'
}

export interface AccessLogOptions {
  readonly onRequest: Services['onRequest']
  /** The pattern of a path. */
  readonly toRoute: (path: string) => string
}

/** Assigns the request id, writes the access line and reports the request. */
export const accessLog = (settings: WitnessSettings, { onRequest, toRoute }: AccessLogOptions) =>
  createMiddleware<WitnessHttpEnv>(async (c, next) => {
    c.set('settings', settings)
    c.set('secrets', toSecrets(c.req.header('Authorization')))
    const startedAt = Date.now()
    const clientId = c.req.header('X-Request-Id') ?? ''
    const requestId = SAFE_REQUEST_ID.test(clientId) ? clientId : crypto.randomUUID()
    c.set('requestId', requestId)
    c.header('X-Request-Id', requestId)
    c.header('Cache-Control', 'no-store')
    c.header('X-Content-Type-Options', 'nosniff')
    await next()
    const { status } = c.res
    logRequest(c, toLevel(status, c.get('isRoutine')), {
      msg: 'request',
      requestId,
      method: c.req.method,
      token: c.get('tokenName'),
      slot: c.get('slot'),
      leaseSlot: toLoggedHeader(c.req.header('X-Lease-Slot')),
      generation: c.get('generation'),
      outcome: c.get('outcome'),
      notRenewed: c.get('notRenewed'),
      status,
      // A Worker's clock advances only during I/O, so this measures waiting, not CPU time.
      ms: Date.now() - startedAt,
      ...(isLogged(settings, 'debug') ? { request: c.get('request') } : {}),
    })
    onRequest?.({
      method: c.req.method,
      route: toRoute(c.req.path),
      outcome: c.get('outcome') ?? 'none',
      status,
      seconds: Math.max(0, Date.now() - startedAt) / 1_000,
    })
  })

const MAX_BODY_BYTES = 64 * 1_024
/** Cloudflare's own limit on most plans. Up to here a body is read to its end, because an early response can be lost. */
const MAX_DRAINED_BYTES = 100 * 1_024 * 1_024

const concatenate = (chunks: readonly Uint8Array[], size: number): Uint8Array => {
  if (chunks.length === 1 && chunks[0]) return chunks[0]
  const body = new Uint8Array(size)
  let offset = 0
  for (const chunk of chunks) {
    body.set(chunk, offset)
    offset += chunk.byteLength
  }
  return body
}

/** For a body whose Content-Length is within the limit. A stream would be slower. */
const readWhole = async (request: Request): Promise<Uint8Array | BodyFailure> => {
  try {
    return new Uint8Array(await request.arrayBuffer())
  } catch {
    return 'body-aborted'
  }
}

const readStream = async (stream: ReadableStream<Uint8Array>): Promise<Uint8Array | BodyFailure> => {
  const chunks: Uint8Array[] = []
  let size = 0
  const reader = stream.getReader()
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      size += read.value.byteLength
      if (size <= MAX_BODY_BYTES) chunks.push(read.value)
      if (size > MAX_DRAINED_BYTES) {
        await reader.cancel()
        return 'body-aborted'
      }
    }
  } catch {
    // The client disconnected or sent invalid framing. The platform's error does not distinguish them.
    return 'body-aborted'
  }
  return size > MAX_BODY_BYTES ? 'body-too-large' : concatenate(chunks, size)
}

/**
 * Whether to look for a body. Looking for one is slow on Node, which creates streams. A request without these headers has none (RFC 9112 section 6.3).
 */
const mayHaveBody = ({ method, headers }: Request): boolean =>
  (method !== 'GET' && method !== 'HEAD') || headers.has('Content-Length') || headers.has('Transfer-Encoding')

const readWholeOrStream = async (request: Request): Promise<Uint8Array | BodyFailure> => {
  if (!mayHaveBody(request)) return new Uint8Array()
  const isSmall = Number(request.headers.get('Content-Length') ?? Number.POSITIVE_INFINITY) <= MAX_BODY_BYTES
  if (isSmall) return readWhole(request)
  return request.body ? readStream(request.body) : new Uint8Array()
}

/**
 * Reads the whole body of every request first on a platform where a response that leaves it unread breaks the next request. On
 * Node, a request that is rejected by its head costs no memory for its body.
 */
export const drainBody = createMiddleware<WitnessHttpEnv>(async (c, next) => {
  if (c.env?.incoming) return next()
  const body = await readWholeOrStream(c.req.raw)
  if (body === 'body-aborted') c.header('Connection', 'close')
  const isUnread = typeof body !== 'string' && body.byteLength > 0 && isEncoded(c.req.header('Content-Encoding'))
  c.set('body', isUnread ? 'unsupported-encoding' : body)
  return next()
})

/** The body of a request that its head permits. Throws a `BodyError`. */
export const takeBody = async (c: Context<WitnessHttpEnv>): Promise<Uint8Array> => {
  if (c.env?.incoming) return c.env.incoming.readBody(MAX_BODY_BYTES)
  const body = c.get('body')
  if (typeof body === 'string') throw new BodyError(body)
  return body
}

const BODY_ERRORS: Readonly<Record<BodyFailure, RequestError>> = {
  'body-too-large': { code: 'body-too-large' },
  'request-timeout': { code: 'request-timeout' },
  'unsupported-encoding': { code: 'unsupported-encoding' },
  'body-aborted': { code: 'invalid-request', detail: 'The request body was incomplete. Send it again.' },
  overloaded: {
    code: 'overloaded',
    detail: 'The witness has too many unfinished requests. Nothing was done; retry later.',
  },
}

export const bodyErrorResponse = (c: Context<WitnessHttpEnv>, { kind }: BodyError) =>
  errorResponse(c, BODY_ERRORS[kind])

/** A host with one of these would become a part of the path, the query or the user information of the URL. */
const URL_DELIMITER = /[/?#@\\]/

/** RFC 9112 section 3.2: an invalid Host is a 400, before any authentication. */
export const requireHost = createMiddleware<WitnessHttpEnv>((c, next) =>
  c.req.path === INVALID_PATH || URL_DELIMITER.test(c.req.header('Host') ?? '')
    ? Promise.resolve(errorResponse(c, { code: 'invalid-request', detail: 'The Host header must be a host name.' }))
    : next(),
)

/** A read ignores its body, but not one that cannot be read. A write takes its body after it is known to be permitted. */
export const requireBodyOfRead = createMiddleware<WitnessHttpEnv>(async (c, next) => {
  const isRead = c.req.method === 'GET' || c.req.method === 'HEAD'
  if (isRead && mayHaveBody(c.req.raw)) await takeBody(c)
  return next()
})

/** `listKnown`: the parameters that a request takes; undefined: the path does not have the method, so it gets another error. */
export const rejectUnknownParameters = (listKnown: (path: string, method: string) => readonly string[] | undefined) =>
  createMiddleware<WitnessHttpEnv>(async (c, next) => {
    const known = c.req.url.includes('?') ? listKnown(c.req.path, c.req.method) : undefined
    const detail = known && explainUnknownParameter(c.req.url, known)
    return detail === undefined ? next() : errorResponse(c, { code: 'unknown-parameter', detail })
  })

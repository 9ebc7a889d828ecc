import type { Lease } from '@pool/contract/lease'

/** Shared by both baselines: the HTTP interface of the lease witness for GET and PUT of a slot. */

/** A PUT, fenced by the generation that its sender last saw. */
export interface LeasePut {
  readonly holder: string
  readonly ttlMs: number
  readonly generation: number
}

export interface BaselineEnv {
  readonly BEARER_TOKENS_CSV: string
}

// workerd has this function in addition to the standard ones. The types of Node do not.
const subtle = crypto.subtle as typeof crypto.subtle & { timingSafeEqual(a: Uint8Array, b: Uint8Array): boolean }
const utf8 = new TextEncoder()
let allowed: Uint8Array[] | undefined

/** Compares the token with every allowed one in constant time, as the witness does. Lengths are not hidden. */
export const isAllowed = (request: Request, { BEARER_TOKENS_CSV }: BaselineEnv): boolean => {
  allowed ??= BEARER_TOKENS_CSV.split(',').map(token => utf8.encode(token))
  const given = utf8.encode(request.headers.get('Authorization')?.replace(/^bearer +/i, '') ?? '')
  const isEqual = (one: Uint8Array) => one.byteLength === given.byteLength && subtle.timingSafeEqual(one, given)
  return allowed.filter(isEqual).length > 0
}

const prefix = '/lease/'

export const parseBaselineSlot = (request: Request): string =>
  decodeURIComponent(new URL(request.url).pathname.slice(prefix.length))

/** Undefined: the request is invalid. */
export const parseBaselinePut = (request: Request, body: string): LeasePut | undefined => {
  const match = /^(?:W\/)?"?(\d{1,15})"?$/.exec(request.headers.get('If-Match') ?? '')
  const { holder = request.headers.get('X-Holder'), ttlSeconds = 30 } = body === '' ? {} : JSON.parse(body)
  if (!match || typeof holder !== 'string' || typeof ttlSeconds !== 'number') return undefined
  return { holder, ttlMs: ttlSeconds * 1_000, generation: Number(match[1]) }
}

/** The new lease; undefined: the precondition failed. */
export const grantLease = (current: Lease | undefined, put: LeasePut, now: number): Lease | undefined => {
  if (put.generation !== (current?.generation ?? 0)) return undefined
  const isLive = current !== undefined && now < Date.parse(current.expiresAt)
  if (isLive && current.holder !== put.holder) return undefined
  return {
    holder: put.holder,
    acquiredAt: isLive ? current.acquiredAt : new Date(now).toISOString(),
    expiresAt: new Date(now + put.ttlMs).toISOString(),
    generation: put.generation + 1,
  }
}

const NO_LEASE: Lease = { holder: '', acquiredAt: '', expiresAt: '', generation: 0 }

/** A response with the same headers as the witness's. */
export const createLeaseResponse = (request: Request, status: 200 | 412, lease: Lease = NO_LEASE): Response =>
  new Response(JSON.stringify(lease), {
    status,
    headers: {
      'Content-Type': 'application/json',
      'Cache-Control': 'no-store',
      ETag: `"${lease.generation}"`,
      'X-Request-Id': request.headers.get('X-Request-Id') ?? crypto.randomUUID(),
    },
  })

/** The interface requires a log line per request. The memory baseline stores nothing and does not log. */
export const logRequest = (request: Request, response: Response): Response => {
  const line = {
    level: 'info',
    time: new Date().toISOString(),
    msg: 'answered',
    requestId: response.headers.get('X-Request-Id'),
    method: request.method,
    slot: parseBaselineSlot(request),
    leaseSlot: request.headers.get('X-Lease-Slot') ?? undefined,
    generation: response.headers.get('ETag'),
    status: response.status,
  }
  // biome-ignore lint/suspicious/noConsole: the only way out of a worker that its runtime collects
  console.log(JSON.stringify(line))
  return response
}

export const createErrorResponse = (status: 400 | 401 | 404 | 405, error: string): Response =>
  Response.json({ error }, { status })

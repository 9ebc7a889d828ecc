/** What both baselines have in common: the wire of the lease witness, as far as GET and PUT of a slot go. */

export interface BaselineLease {
  readonly holder: string
  readonly acquiredAt: string
  readonly expiresAt: string
  readonly generation: number
}

/** A PUT, fenced by the generation that its sender last saw. */
export interface LeasePut {
  readonly holder: string
  readonly ttlMs: number
  readonly generation: number
}

export interface BaselineEnv {
  readonly BEARER_TOKENS_CSV: string
}

// workerd has it beside what the standard names; the types of Node do not know it.
const subtle = crypto.subtle as typeof crypto.subtle & { timingSafeEqual(a: Uint8Array, b: Uint8Array): boolean }
const utf8 = new TextEncoder()
let allowed: Uint8Array[] | undefined

/** Compared in constant time with every allowed one, as the witness does; lengths are not hidden. */
export const isAllowed = (request: Request, { BEARER_TOKENS_CSV }: BaselineEnv): boolean => {
  allowed ??= BEARER_TOKENS_CSV.split(',').map(token => utf8.encode(token))
  const given = utf8.encode(request.headers.get('Authorization')?.replace(/^bearer +/i, '') ?? '')
  const isEqual = (one: Uint8Array) => one.byteLength === given.byteLength && subtle.timingSafeEqual(one, given)
  return allowed.filter(isEqual).length > 0
}

const prefix = '/lease/'

export const parseBaselineSlot = (request: Request): string =>
  decodeURIComponent(new URL(request.url).pathname.slice(prefix.length))

/** What a PUT asks for; undefined: it cannot be read. */
export const parseBaselinePut = (request: Request, body: string): LeasePut | undefined => {
  const match = /^(?:W\/)?"?(\d{1,15})"?$/.exec(request.headers.get('If-Match') ?? '')
  const { holder = request.headers.get('X-Holder'), ttlSeconds = 30 } = body === '' ? {} : JSON.parse(body)
  if (!match || typeof holder !== 'string' || typeof ttlSeconds !== 'number') return undefined
  return { holder, ttlMs: ttlSeconds * 1_000, generation: Number(match[1]) }
}

/** The lease that the asker gets; undefined: it gets none. */
export const grantLease = (
  current: BaselineLease | undefined,
  ask: LeasePut,
  now: number,
): BaselineLease | undefined => {
  if (ask.generation !== (current?.generation ?? 0)) return undefined
  const isLive = current !== undefined && now < Date.parse(current.expiresAt)
  if (isLive && current.holder !== ask.holder) return undefined
  return {
    holder: ask.holder,
    acquiredAt: isLive ? current.acquiredAt : new Date(now).toISOString(),
    expiresAt: new Date(now + ask.ttlMs).toISOString(),
    generation: ask.generation + 1,
  }
}

const NO_LEASE: BaselineLease = { holder: '', acquiredAt: '', expiresAt: '', generation: 0 }

/** An answer with the headers that the witness's have. */
export const createLeaseResponse = (request: Request, status: 200 | 412, lease: BaselineLease = NO_LEASE): Response =>
  new Response(JSON.stringify(lease), {
    status,
    headers: {
      'Content-Type': 'application/json',
      'Cache-Control': 'no-store',
      ETag: `"${lease.generation}"`,
      'X-Request-Id': request.headers.get('X-Request-Id') ?? crypto.randomUUID(),
    },
  })

/** The interface asks for a line a request; of whoever stores nothing it is not asked. */
export const logRequest = (request: Request, answer: Response): Response => {
  const line = {
    level: 'info',
    time: new Date().toISOString(),
    msg: 'answered',
    requestId: answer.headers.get('X-Request-Id'),
    method: request.method,
    slot: parseBaselineSlot(request),
    leaseSlot: request.headers.get('X-Lease-Slot') ?? undefined,
    generation: answer.headers.get('ETag'),
    status: answer.status,
  }
  // biome-ignore lint/suspicious/noConsole: the only way out of a worker that its runtime collects
  console.log(JSON.stringify(line))
  return answer
}

export const createErrorResponse = (status: 400 | 401 | 404 | 405, error: string): Response =>
  Response.json({ error }, { status })

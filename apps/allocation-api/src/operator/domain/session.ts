/** A session that has not ended. */
export interface LiveSession {
  readonly createdAt: Date
  readonly expiresAt: Date
}

/** Milliseconds after which a session ends without a request, and in any case. */
export const SESSION_IDLE_MS = 30 * 60_000
export const MAX_SESSION_AGE_MS = 12 * 3_600_000

/** Bytes of a session id: far more than anyone can guess. */
export const SESSION_ID_BYTES = 32

/** The names of the cookie: with the prefix, a browser accepts it only as `Secure`, for this host and all paths (RFC 6265bis). */
const SECURE_COOKIE = '__Host-pool-session'
const PLAIN_COOKIE = 'pool-session'

const SESSION_ID = /^[A-Za-z0-9_-]{43}$/

/** The id in a Cookie header (RFC 6265 section 4.2.1). Null: none of the right form. */
export const parseSessionCookie = (header: string | undefined): string | null => {
  const cookies = new Map<string, string>()
  for (const pair of header?.split(';') ?? []) {
    const at = pair.indexOf('=')
    const name = pair.slice(0, Math.max(at, 0)).trim()
    if (!cookies.has(name)) cookies.set(name, pair.slice(at + 1).trim())
  }
  const id = cookies.get(SECURE_COOKIE) ?? cookies.get(PLAIN_COOKIE)
  return id !== undefined && SESSION_ID.test(id) ? id : null
}

const ATTRIBUTES = 'Path=/; HttpOnly; SameSite=Strict'

/**
 * The Set-Cookie headers of a new session. A browser that reached the service over TLS, possibly at a proxy, says so in the
 * `Origin` of the request.
 */
export const toSessionCookies = (id: string, origin: string | undefined): readonly string[] => [
  origin?.startsWith('https://')
    ? `${SECURE_COOKIE}=${id}; ${ATTRIBUTES}; Secure`
    : `${PLAIN_COOKIE}=${id}; ${ATTRIBUTES}`,
]

/** The Set-Cookie headers that remove the cookie under both names. */
export const EXPIRED_SESSION_COOKIES: readonly string[] = [
  `${SECURE_COOKIE}=; ${ATTRIBUTES}; Secure; Max-Age=0`,
  `${PLAIN_COOKIE}=; ${ATTRIBUTES}; Max-Age=0`,
]

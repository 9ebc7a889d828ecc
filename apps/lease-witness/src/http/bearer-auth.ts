import { createMiddleware } from 'hono/factory'
import { parseMaxRequestsPerMinute, type WitnessSettings } from '../settings.ts'
import { RequestLimit } from './domain/request-limit.ts'
import { errorResponse } from './errors.ts'
import { type Authentication, TokenRegistry } from './tokens.ts'
import type { Services, SharedRequestLimit, WitnessHttpEnv } from './types.ts'

/** The token of an `Authorization` header (RFC 6750 section 2.1). The scheme is case-insensitive. */
export const parseBearerToken = (authorization: string | undefined): string | undefined =>
  /^bearer +([^ ]+) *$/i.exec(authorization ?? '')?.[1]

/** All requests without an accepted token share one limit, so that they cannot use up that of a client. */
const REJECTED = ''
/** How long a request waits that the limit of a whole location has rejected: that limit does not say. */
const SHARED_WAIT_MS = 5_000
/** A rejection by the limit is logged at `info` at most this often per token. */
const LOG_INTERVAL_MS = 10_000

/** The limits of the requests of each token. */
class TokenLimits {
  readonly #limit = new RequestLimit()
  readonly #loggedAt = new Map<string, number>()
  readonly #defaultMax: number
  readonly #shared: SharedRequestLimit | undefined

  constructor(settings: WitnessSettings, shared: SharedRequestLimit | undefined) {
    this.#defaultMax = parseMaxRequestsPerMinute(settings)
    this.#shared = shared
  }

  /** 0: the request is within both limits; otherwise the milliseconds to wait. */
  async take(authentication: Authentication | undefined, now: number): Promise<number> {
    const caller = authentication?.kind === 'accepted' ? authentication.caller : undefined
    const key = caller?.name ?? REJECTED
    const own = caller && caller.grant !== 'full' ? caller.grant.maxRequestsPerMinute : undefined
    const max = own ?? this.#defaultMax
    const waitMs = max === 0 ? 0 : this.#limit.take(key, max, now)
    if (waitMs > 0 || !this.#shared) return waitMs
    return (await this.#shared(key)) ? 0 : SHARED_WAIT_MS
  }

  /** Whether to log a rejection at `info`. */
  isNews(name: string, now: number): boolean {
    const loggedAt = this.#loggedAt.get(name)
    if (loggedAt !== undefined && now >= loggedAt && now - loggedAt < LOG_INTERVAL_MS) return false
    this.#loggedAt.set(name, now)
    return true
  }
}

/** Rejects a request without an accepted token, and requests above the limit of a token. */
export const bearerAuth = (
  settings: WitnessSettings,
  { sharedRequestLimit, lacksPolicies }: Pick<Services, 'sharedRequestLimit' | 'lacksPolicies'>,
) => {
  const tokens = new TokenRegistry(settings)
  const limits = new TokenLimits(settings, sharedRequestLimit)
  return createMiddleware<WitnessHttpEnv>(async (c, next) => {
    const now = Date.now()
    const token = parseBearerToken(c.req.header('Authorization'))
    const authentication = token === undefined ? undefined : await tokens.authenticate(token, now)
    const isAccepted = authentication?.kind === 'accepted'
    const name = isAccepted ? authentication.caller.name : authentication?.name
    if (name !== undefined) c.set('tokenName', name)

    const waitMs = await limits.take(authentication, now)
    if (waitMs > 0) {
      c.set('isRoutine', !limits.isNews(isAccepted ? authentication.caller.name : REJECTED, now))
      c.header('Retry-After', String(Math.ceil(waitMs / 1_000)))
      return errorResponse(c, { code: 'too-many-requests' })
    }
    if (isAccepted) {
      c.set('caller', authentication.caller)
      return next()
    }
    if (lacksPolicies && token !== undefined) {
      return errorResponse(c, {
        code: 'lease-unavailable',
        detail: 'The witness cannot read its token policies now. Retry later.',
      })
    }
    c.set('outcome', 'unauthorized')
    c.header('WWW-Authenticate', token === undefined ? 'Bearer' : 'Bearer error="invalid_token"')
    // The contract fixes this body: no detail.
    return c.json({ error: 'unauthorized' }, 401)
  })
}

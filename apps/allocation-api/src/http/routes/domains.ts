import { type DomainCheck, domainChallengeRequest } from '@pool/contract'
import type { DomainProof } from '../../deployments/fqdn.ts'
import type { RateLimitDecision } from '../../lib/rate-limiter.ts'
import { type Handlers, parseBody, parseIdempotencyKey, sendError } from '../request.ts'

export interface DomainOperations extends Pick<DomainProof, 'createChallenge'> {
  /** Counts a challenge for the client with this address: each one is stored for days. */
  readonly limitChallenges: (address: string | null) => RateLimitDecision
  /** `key`: the Idempotency-Key of the challenge. */
  readonly check: (domain: string, key: string | undefined) => Promise<DomainCheck>
}

export const domainHandlers = (domains: DomainOperations): Pick<Handlers, 'createDomainChallenge' | 'checkDomain'> => ({
  createDomainChallenge: async c => {
    const body = await parseBody(c, domainChallengeRequest)
    if (!body.ok) return sendError(c, body.error)
    const key = parseIdempotencyKey(c)
    if (!key.ok) return sendError(c, key.error)
    const limit = domains.limitChallenges(c.env.address)
    if (limit.kind !== 'allowed') {
      return sendError(c, { ...limit, detail: 'Too many challenges from your address; retry later.' })
    }
    const challenge = await domains.createChallenge(body.value.domain, key.value)
    c.env.outcome = 'challenged'
    return c.json(challenge, 201)
  },

  // For operators, because each check is a lookup in the DNS of another domain.
  checkDomain: async c => {
    const body = await parseBody(c, domainChallengeRequest)
    if (!body.ok) return sendError(c, body.error)
    const key = parseIdempotencyKey(c)
    if (!key.ok) return sendError(c, key.error)
    const result = await domains.check(body.value.domain, key.value)
    c.env.outcome = result.available ? 'available' : (result.reason ?? 'unavailable')
    return c.json(result, 200)
  },
})

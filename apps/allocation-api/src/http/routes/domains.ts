import { domainChallengeRequest } from '@pool/contract'
import { Hono } from 'hono'
import type { DomainProof } from '../../deployments/domain-proof.ts'
import { sendError } from '../errors.ts'
import type { HttpEnv } from '../types.ts'
import { parseIdempotencyKey, validateJson } from '../validate.ts'

export type DomainOperations = Pick<DomainProof, 'createChallenge'>

export const domainRoutes = (domains: DomainOperations) =>
  new Hono<HttpEnv>().post('/challenge', validateJson(domainChallengeRequest), async c => {
    const key = parseIdempotencyKey(c)
    if (!key.ok) return sendError(c, key.error)
    const challenge = await domains.createChallenge(c.req.valid('json').domain, key.value)
    c.set('outcome', 'challenged')
    return c.json(challenge, 201)
  })

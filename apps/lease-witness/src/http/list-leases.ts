import { type LeaseList, leaseListQuery } from '@pool/contract/lease'
import { Hono } from 'hono'
import { parseWith } from '../lease/request.ts'
import { canList, canRead } from './domain/token-policies.ts'
import { errorResponse, forbiddenResponse, logUnavailable } from './errors.ts'
import type { Services, WitnessHttpEnv } from './types.ts'

/** Part of every response, because operators may read the list during an incident without the documentation. */
const DETAIL =
  'Eventually consistent: a change of holder appears after seconds to minutes, a renewed expiresAt up to a minute ' +
  'later. Do not use it for decisions; GET /lease/<slot> is authoritative.'

export const listLeasesRoutes = ({ directory }: Services): Hono<WitnessHttpEnv> => {
  const app = new Hono<WitnessHttpEnv>()
  app.get('/', async c => {
    const query = parseWith(leaseListQuery, c.req.query())
    if (!query.ok) return errorResponse(c, query.error)
    const { grant } = c.get('caller')
    if (!canList(grant, query.value.prefix)) return forbiddenResponse(c)
    const outcome = await directory.list(query.value)
    if (outcome.kind === 'copy-unavailable') {
      logUnavailable(c, outcome.kind, outcome.reason)
      return errorResponse(c, { code: outcome.kind })
    }
    c.set('outcome', 'listed')
    const { nextCursor } = outcome
    // A record whose key is percent-encoded can belong to a slot that does not have the prefix.
    const leases = outcome.leases.filter(({ slot }) => canRead(grant, slot))
    const body: LeaseList = { consistency: 'eventual', detail: DETAIL, leases }
    if (nextCursor !== undefined) body.nextCursor = nextCursor
    return c.json(body)
  })
  return app
}

import { type LeaseList, leaseListQuery } from '@pool/contract/lease'
import { Hono } from 'hono'
import { parseWith } from '../lease/request.ts'
import { errorResponse, logUnavailable } from './errors.ts'
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
    const outcome = await directory.list(query.value)
    if (outcome.kind === 'copy-unavailable') {
      logUnavailable(c, outcome.kind, outcome.reason)
      return errorResponse(c, { code: outcome.kind })
    }
    c.set('outcome', 'listed')
    const { leases, nextCursor } = outcome
    const body: LeaseList = { consistency: 'eventual', detail: DETAIL, leases }
    if (nextCursor !== undefined) body.nextCursor = nextCursor
    return c.json(body)
  })
  return app
}

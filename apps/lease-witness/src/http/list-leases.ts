import { type LeaseList, leaseListQuery } from '@pool/contract/lease'
import { Hono } from 'hono'
import type { Deps } from './context.ts'
import { problem } from './errors.ts'
import type { HttpEnv } from './types.ts'
import { parse } from './validate.ts'

/** The list says itself how far it can be trusted, for it will be read by people in a hurry. */
const DETAIL =
  'From copies that are written behind and seen late: a change of holder after seconds to minutes, expiresAt of a ' +
  'lease that is being renewed a minute later still. Decide nothing by it: GET /lease/<slot> is exact.'

export const leasesRoutes = (deps: Deps): Hono<HttpEnv> => {
  const app = new Hono<HttpEnv>()
  app.get('/', async c => {
    const query = parse(leaseListQuery, c.req.query())
    if (!query.ok) return problem(c, query.refused)
    const outcome = await deps.copies(c).list(query.value)
    if (outcome.kind === 'copy-unavailable') return problem(c, outcome)
    c.set('outcome', 'listed')
    const { leases, nextCursor } = outcome
    const body: LeaseList = { consistency: 'eventual', detail: DETAIL, leases }
    if (nextCursor !== undefined) body.nextCursor = nextCursor
    return c.json(body)
  })
  return app
}

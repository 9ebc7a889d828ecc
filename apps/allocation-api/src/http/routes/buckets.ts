import { bucketClaimsQuery, encodeCursor } from '@pool/contract'
import { Hono } from 'hono'
import type { BucketClaims } from '../../deployments/bucket-claims.ts'
import { sendError } from '../errors.ts'
import type { HttpEnv } from '../types.ts'
import { getCaller, validate } from '../validate.ts'

export type BucketOperations = Pick<BucketClaims, 'list' | 'lift'>

/** Only the operator listener has them. */
export const bucketRoutes = (buckets: BucketOperations) =>
  new Hono<HttpEnv>()
    .get('/', validate('query', bucketClaimsQuery), async c => {
      const { nextCursor, ...page } = await buckets.list(c.req.valid('query'))
      c.set('outcome', 'listed')
      return c.json({ ...page, ...(nextCursor === undefined ? {} : { nextCursor: encodeCursor(nextCursor) }) }, 200)
    })

    .delete('/:bucket', async c => {
      const outcome = await buckets.lift(c.req.param('bucket'), getCaller(c))
      if (outcome.kind === 'not-found') return sendError(c, { kind: 'not-found', detail: 'No claim of this bucket.' })
      if (outcome.kind !== 'lifted') return sendError(c, outcome)
      c.set('outcome', outcome.kind)
      return c.body(null, 204)
    })

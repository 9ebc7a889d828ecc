import { bucketClaimsQuery, encodeCursor } from '@pool/contract'
import { Hono } from 'hono'
import type { BucketClaims } from '../../deployments/bucket-claims.ts'
import { sendError } from '../errors.ts'
import { type ListStreams, sendListPage } from '../streams.ts'
import type { HttpEnv } from '../types.ts'
import { getCaller, validate } from '../validate.ts'

export type BucketOperations = Pick<BucketClaims, 'list' | 'lift'>

/** Only the operator listener has them. */
export const bucketRoutes = (buckets: BucketOperations, lists: ListStreams) =>
  new Hono<HttpEnv>()
    .get('/', validate('query', bucketClaimsQuery), c =>
      sendListPage(c, lists, async () => {
        const { nextCursor, ...page } = await buckets.list(c.req.valid('query'))
        return { ...page, ...(nextCursor === undefined ? {} : { nextCursor: encodeCursor(nextCursor) }) }
      }),
    )

    .delete('/:bucket', async c => {
      const outcome = await buckets.lift(c.req.param('bucket'), getCaller(c))
      if (outcome.kind === 'not-found') return sendError(c, { kind: 'not-found', detail: 'No claim of this bucket.' })
      if (outcome.kind !== 'lifted') return sendError(c, outcome)
      c.set('outcome', outcome.kind)
      return c.body(null, 204)
    })

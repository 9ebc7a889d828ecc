import { bucketClaimsQuery } from '@pool/contract'
import { type Context, Hono } from 'hono'
import type { BucketClaims } from '../../deployments/bucket-claims.ts'
import { sendError } from '../errors.ts'
import { type ListStreams, sendListPage } from '../streams.ts'
import type { HttpEnv } from '../types.ts'
import { getCaller, validate } from '../validate.ts'

export type BucketOperations = Pick<BucketClaims, 'list' | 'lift'>

const sendNotFound = (c: Context<HttpEnv>) => sendError(c, { kind: 'not-found', detail: 'No claim of this bucket.' })

/** Only the operator listener has them. */
export const bucketRoutes = (buckets: BucketOperations, lists: ListStreams) =>
  new Hono<HttpEnv>()
    .get('/', validate('query', bucketClaimsQuery), c =>
      sendListPage(c, lists, 'buckets', () => buckets.list(c.req.valid('query'))),
    )

    .delete('/:bucket', async c => {
      const bucket = c.req.param('bucket')
      // Postgres rejects text with a null character.
      if (bucket.includes('\0')) return sendNotFound(c)
      const outcome = await buckets.lift(bucket, getCaller(c))
      if (outcome.kind === 'not-found') return sendNotFound(c)
      if (outcome.kind !== 'lifted') return sendError(c, outcome)
      c.env.outcome = outcome.kind
      return c.body(null, 204)
    })

import { operations } from '@pool/contract'
import type { Context } from 'hono'
import type { BucketClaims } from '../../deployments/bucket-claims.ts'
import { getCaller, type Handlers, type HttpEnv, sendError, validated } from '../request.ts'
import { type ListStreams, sendListPage } from '../streams.ts'

export type BucketOperations = Pick<BucketClaims, 'list' | 'lift'>

const sendNotFound = (c: Context<HttpEnv>) => sendError(c, { kind: 'not-found', detail: 'No claim of this bucket.' })

export const bucketHandlers = (
  buckets: BucketOperations,
  lists: ListStreams,
): Pick<Handlers, 'listBucketClaims' | 'liftBucketClaim'> => ({
  listBucketClaims: validated(operations.listBucketClaims, (c, { query }) =>
    sendListPage(c, lists, 'buckets', () => buckets.list(query)),
  ),

  liftBucketClaim: validated(operations.liftBucketClaim, async (c, { path: { bucket } }) => {
    // Postgres rejects text with a null character.
    if (bucket.includes('\0')) return sendNotFound(c)
    const outcome = await buckets.lift(bucket, getCaller(c))
    if (outcome.kind === 'not-found') return sendNotFound(c)
    if (outcome.kind !== 'lifted') return sendError(c, outcome)
    c.env.outcome = outcome.kind
    return c.body(null, 204)
  }),
})

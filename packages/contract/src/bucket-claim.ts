import * as z from 'zod'
import { cursor, limit } from './allocation.ts'
import { timestamp } from './common.ts'

/** The assignment of a bucket name to a lineage: the infrastructure of one tenant under an FQDN. */
export const bucketClaim = z
  .object({
    bucket: z.string(),
    sovereignFQDN: z.string(),
    lineageId: z.uuid(),
    deploymentId: z.uuid().optional().meta({ description: 'Absent after the deployment was deleted.' }),
    isPermanent: z.boolean().meta({
      description: 'The bucket may exist. Until then, the claim ends with the run of the deployment.',
    }),
    claimedAt: timestamp,
  })
  .meta({ id: 'BucketClaim' })
export type BucketClaim = z.infer<typeof bucketClaim>

export const bucketClaimsQuery = z.object({
  limit: limit.optional().meta({ description: 'Maximum number of items; 100 by default, and never more than 1000.' }),
  cursor: cursor(/^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/).optional(),
})

export const bucketClaimsResponse = z
  .object({ buckets: z.array(bucketClaim), nextCursor: z.string().optional() })
  .meta({ id: 'BucketClaimsResponse', description: 'By name of the bucket.' })

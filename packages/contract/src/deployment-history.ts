import * as z from 'zod'
import { cursor, limit } from './allocation.ts'
import { rule } from './allocation-problem.ts'
import { timestamp, WITHOUT_NULL } from './common.ts'
import { canonicalDomain } from './fields.ts'

/**
 * What a request or a run did to a deployment. `apply-requested` and `destroy-requested`: a request started the operation.
 * `ready`, `failed` and `destroyed`: how an operation ended.
 */
export const deploymentHistoryEntry = z
  .object({
    at: timestamp,
    event: z.enum([
      'created',
      'apply-requested',
      'destroy-requested',
      'cancelled',
      'abandoned',
      'deleted',
      'unlocked',
      'bucket-claim-lifted',
      'ready',
      'failed',
      'destroyed',
    ]),
    deploymentId: z.uuid(),
    lineageId: z.uuid(),
    sovereignFQDN: z.string(),
    orgName: z.string(),
    actor: z
      .enum(['in-cluster', 'operator', 'deployment'])
      .meta({ description: 'Which listener received the request; `deployment`: a run, without a request.' }),
    address: z.string().optional().meta({ description: 'The network address of the caller.' }),
    requestId: z.string().optional(),
    detail: z.string().optional().meta({
      description: 'With `failed`: the reason. With `unlocked`: the lock. With `bucket-claim-lifted`: the bucket.',
    }),
  })
  .meta({ id: 'DeploymentHistoryEntry' })
export type DeploymentHistoryEntry = z.infer<typeof deploymentHistoryEntry>

export const deploymentHistoryQuery = z.object({
  deployment: z
    .uuid(rule('invalid-format', 'deployment must be the id of a deployment.'))
    .overwrite(id => id.toLowerCase())
    .optional()
    .meta({ description: 'Only entries of this deployment.' }),
  fqdn: z
    .string()
    .regex(new RegExp(`^${WITHOUT_NULL}$`), {
      ...rule('invalid-format', 'fqdn must be text without null characters.'),
      abort: true,
    })
    .overwrite(canonicalDomain)
    .optional()
    .meta({ description: 'Only entries of this FQDN.' }),
  limit: limit.optional().meta({ description: 'Maximum number of items; 100 by default, and never more than 1000.' }),
  cursor: cursor(/^[1-9][0-9]{0,15}$/).optional(),
})

export const deploymentHistoryResponse = z
  .object({ entries: z.array(deploymentHistoryEntry), nextCursor: z.string().optional() })
  .meta({ id: 'DeploymentHistoryResponse', description: 'Newest first.' })

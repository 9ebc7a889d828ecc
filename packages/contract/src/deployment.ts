import * as z from 'zod'
import { cursor, limit } from './allocation.ts'
import { fault } from './allocation-problem.ts'
import { timestamp } from './time.ts'

/**
 * `pending`: accepted, waiting for its turn. `provisioning`: under way. `ready` and `failed` are final; of a failed one
 * the name is free again.
 */
export const deploymentStatuses = ['pending', 'provisioning', 'ready', 'failed'] as const
export const deploymentStatus = z.enum(deploymentStatuses)
export type DeploymentStatus = z.infer<typeof deploymentStatus>

/** What the infrastructure came to. */
export const deploymentResult = z
  .object({
    sovereignFQDN: z.string(),
    loadBalancerIP: z.ipv4(),
    controlPlaneIP: z.string().optional(),
    details: z.unknown().optional().meta({ description: 'What else the deployment module tells.' }),
  })
  .meta({ id: 'DeploymentResult' })
export type DeploymentResult = z.infer<typeof deploymentResult>

/** A deployment as it stands. No key is in it: of the object storage only region and bucket are told. */
export const deployment = z
  .object({
    id: z.uuid(),
    status: deploymentStatus,
    startedAt: timestamp,
    finishedAt: timestamp.nullable(),
    sovereignFQDN: z.string(),
    region: z.string(),
    objectStorageRegion: z.string().meta({ description: 'Empty without object storage.' }),
    objectStorageBucket: z.string().meta({ description: 'Derived from the FQDN; empty without object storage.' }),
    numEvents: z.number().int(),
    error: z.string().optional().meta({ description: 'Of a failed one: why.' }),
    result: deploymentResult.optional(),
  })
  .meta({ id: 'Deployment' })
export type Deployment = z.infer<typeof deployment>

export const deploymentCreated = z
  .object({ id: z.uuid(), status: z.literal('provisioning'), streamURL: z.string() })
  .meta({ id: 'DeploymentCreated' })
export type DeploymentCreated = z.infer<typeof deploymentCreated>

/** The `data` of an event of the log stream; its `id` counts from 1. */
export const deploymentEvent = z
  .object({
    time: timestamp,
    phase: z.enum(['reserve', 'init', 'apply', 'commit', 'release', 'end']),
    level: z.enum(['info', 'warn', 'error']),
    message: z.string(),
  })
  .meta({ id: 'DeploymentEvent' })
export type DeploymentEvent = z.infer<typeof deploymentEvent>

const lastEventIdRule = fault('invalid-cursor', 'Last-Event-ID must be the id of an event of this stream.')

/** After which line of the log to go on. An empty one is none, as an EventSource has it before the first event. */
export const lastEventId = z
  .string()
  .regex(/^(?:0|[1-9][0-9]{0,9})?$/, { error: lastEventIdRule, abort: true })
  .transform(Number)
  .refine(seq => seq <= 2_147_483_647, { error: lastEventIdRule })
  .meta({ type: 'string', description: 'The `id` of the last event that has arrived: the stream goes on behind it.' })

export const deploymentsQuery = z.object({
  status: z
    .enum(deploymentStatuses, fault('invalid-state', `status must be one of ${deploymentStatuses.join(', ')}.`))
    .optional(),
  limit: limit.optional().meta({ description: 'At most so many; 100 without it, and never more than 1000.' }),
  cursor: cursor(/^[1-9][0-9]{0,15}$/).optional(),
})

export const deploymentsResponse = z
  .object({ deployments: z.array(deployment), nextCursor: z.string().optional() })
  .meta({ id: 'DeploymentsResponse', description: 'Newest first.' })

import type { DeploymentStatus } from '@pool/contract'

/** What the last run of a deployment did, or does. */
export const operations = ['create', 'apply', 'destroy'] as const
export type Operation = (typeof operations)[number]

/** What decides about a call. */
export interface Situation {
  readonly status: DeploymentStatus
  readonly operation: Operation
  /** Whether the state of the lineage may hold more than the kept bucket. */
  readonly hasInfrastructure: boolean
  /** Whether the lineage owns a bucket for good. */
  readonly hasBucket: boolean
}

/** `create` is that of another deployment under the same FQDN. `plan-destroy` is a plan of a destroy. */
export const calls = ['create', 'apply', 'plan', 'destroy', 'plan-destroy', 'delete', 'abandon', 'unlock'] as const
export type Call = (typeof calls)[number]

/**
 * The result of a call. Rejections are error codes. `bucket-exists`: unless the request adopts the
 * bucket. `taken`: the FQDN is in use, which is `subdomain-conflict` in mode
 * `pool` and `fqdn-conflict` in mode `byo`.
 */
export type Verdict =
  | 'created'
  | 'started'
  | 'planned'
  | 'cancelled'
  | 'deleted'
  | 'abandoned'
  | 'unlocked'
  | 'taken'
  | 'fqdn-remains'
  | 'bucket-exists'
  | 'in-progress'
  | 'destroy-incomplete'
  | 'still-up'

const running: readonly DeploymentStatus[] = ['pending', 'provisioning', 'destroying']

export const isFinished = (status: DeploymentStatus): boolean => !running.includes(status)

const decideCreate = ({ status, hasInfrastructure, hasBucket }: Situation): Verdict => {
  if (status === 'pending' || status === 'provisioning' || status === 'ready') return 'taken'
  if (hasInfrastructure) return 'fqdn-remains'
  return hasBucket ? 'bucket-exists' : 'created'
}

const decideWhileRunning = (call: Call): Verdict =>
  call === 'delete' || call === 'abandon' ? 'cancelled' : 'in-progress'

/** What a call does to a deployment, or would have to do. The documentation has the same table. */
export const decideCall = (situation: Situation, call: Call): Verdict => {
  const { status, operation, hasInfrastructure } = situation
  if (call === 'create') return decideCreate(situation)
  if (!isFinished(status)) return decideWhileRunning(call)
  const isPartlyDestroyed = status === 'failed' && operation === 'destroy'
  switch (call) {
    case 'apply':
      return isPartlyDestroyed ? 'destroy-incomplete' : 'started'
    case 'plan':
      return isPartlyDestroyed ? 'destroy-incomplete' : 'planned'
    case 'destroy':
      return 'started'
    case 'plan-destroy':
      return 'planned'
    case 'delete':
      return hasInfrastructure ? 'still-up' : 'deleted'
    case 'abandon':
      return hasInfrastructure ? 'abandoned' : 'deleted'
    case 'unlock':
      return 'unlocked'
  }
}

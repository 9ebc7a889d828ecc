import type {
  DeploymentEvent,
  DeploymentResult,
  FieldFault,
  ObjectStorageKeys,
  ObjectStorageRegion,
} from '@pool/contract'
import type { Rejection } from '../../allocation/domain/types.ts'
import type { PoolName } from '../../naming/naming.ts'
import type { Operation } from './lifecycle.ts'

/** A validated request in canonical form, without its credentials. */
export interface DeploymentSpec {
  readonly orgName: string
  readonly orgEmail: string
  readonly sovereignFQDN: string
  /** The name to allocate in pool mode; null if the domain is the customer's own. */
  readonly name: PoolName | null
  readonly providers: readonly string[]
  readonly region: string
  readonly sshPublicKey: string
  /** Null if none of the chosen providers brings object storage. */
  readonly storage: { readonly region: ObjectStorageRegion; readonly bucket: string } | null
}

/** Object storage credentials. They exist only in the memory of the process that runs the deployment. */
export type AccessKeyPair = Omit<ObjectStorageKeys, 'region'>

/** A line of a deployment's log. */
export type DeploymentLogLine = Pick<DeploymentEvent, 'phase' | 'level' | 'message'>

/** `seq` counts from 1 without gaps. */
export interface StoredLogLine extends DeploymentLogLine {
  readonly seq: number
  readonly at: Date
}

/** The right to work on a deployment. A later generation fences the writes of every earlier one. */
export interface RunLease {
  readonly id: string
  readonly generation: number
}

/** A lock of a state, and the process group that took it. */
export interface StateLock {
  /** As the backend shows it. */
  readonly id: string
  /** Identifies the machine and its boot, so that process numbers can be compared. */
  readonly host: string
  /** Leader of the process group. */
  readonly processGroup: number
  /** Start of the leader: process numbers are used again. In a unit of the operating system; compared only. */
  readonly startedAt: string
}

/**
 * Identifies a state and how far it has come, in Terraform's terms: two states that were created separately differ in
 * `lineage`, and each change of a state increases its `serial`.
 */
export interface KnownState {
  readonly lineage: string
  readonly serial: number
  /** Creations that Terraform started and that the state does not have, as it may be. Absent: none. */
  readonly unfinished?: readonly Creation[]
}

export interface Creation {
  /** Of the resource. */
  readonly address: string
  /** The id of the object that it replaces, if any. */
  readonly replaces?: string
}

/** The plan that the caller of an operation has seen: the operation does exactly this or nothing. */
export interface ConfirmedPlan {
  readonly hash: string
  /** The operation before. If nothing is done, it remains the last one. */
  readonly operationBefore: Operation
}

/** What a process has to know to start or resume a run. */
export interface RunState extends RunLease {
  readonly spec: DeploymentSpec
  /** Identifies the Terraform state, which outlives the deployment. */
  readonly lineageId: string
  readonly operation: Operation
  readonly plan: ConfirmedPlan | null
  /** Runs of this operation so far, this one included. */
  readonly attempt: number
  /** SHA-256 of the token of the reservation; null without a name. */
  readonly reservationTokenHash: Buffer | null
  /** Whether the state may hold more than the kept bucket. */
  readonly hasInfrastructure: boolean
  /** Whether this operation has applied the module: `result` has its outputs. */
  readonly isApplied: boolean
  /** The outputs of the last successful apply. */
  readonly result: DeploymentResult | null
  /** The lock of the state that an earlier run took and is not known to have released. */
  readonly stateLock: StateLock | null
  /** The state as the runs so far know it; null if none has started an apply since the state was empty. */
  readonly knownState: KnownState | null
  /** Whether a run of the lineage is known to have created the bucket. */
  readonly hasCreatedBucket: boolean
  readonly isCancelled: boolean
  /** The reason for a failure that an earlier run decided but did not finish. */
  readonly pendingError: string | null
  /** Log lines stored so far. */
  readonly lineCount: number
}

export interface InvalidDeployment {
  readonly kind: 'invalid-deployment'
  /** Each invalid field once, in documented order. */
  readonly faults: readonly FieldFault[]
}

export interface RejectionWithDetail<Kind extends string> {
  readonly kind: Kind
  readonly detail: string
}

/** Why no run can start now. */
export type Obstacle =
  | InvalidDeployment
  | (RejectionWithDetail<'object-storage-unavailable' | 'provisioning-unavailable' | 'too-many-attempts'> & {
      readonly retryAfterSeconds?: number
    })

/** Why a deployment cannot have its bucket. */
export type BucketObstacle = { readonly kind: 'bucket-exists' | 'bucket-conflict'; readonly detail?: string } | Obstacle

/** Each kind except `created` is the error code of the response. */
export type CreateDecision =
  /** `deploymentToken`: only the client that created the deployment may see it. */
  | { readonly kind: 'created'; readonly id: string; readonly deploymentToken: string }
  | Rejection<'subdomain-conflict' | 'fqdn-conflict'>
  | RejectionWithDetail<'fqdn-remains' | 'domain-not-proven' | 'dns-unavailable'>
  | BucketObstacle

export type CreateOutcome = CreateDecision | Rejection<'idempotency-key-reused'>

/** Each kind except `started` is the error code of the response. */
export type StartOutcome =
  | { readonly kind: 'started'; readonly id: string; readonly status: 'provisioning' | 'destroying' }
  | BucketObstacle
  | Rejection<
      | 'not-found'
      | 'token-mismatch'
      | 'in-progress'
      | 'destroy-incomplete'
      | 'subdomain-conflict'
      | 'fqdn-conflict'
      | 'idempotency-key-reused'
    >
  | RejectionWithDetail<'fqdn-remains' | 'domain-not-proven' | 'dns-unavailable'>

export type PlanOutcome =
  | {
      readonly kind: 'planned'
      readonly operation: 'apply' | 'destroy'
      readonly text: string
      readonly json: unknown
      readonly planHash: string
    }
  | Obstacle
  | Rejection<'not-found' | 'token-mismatch' | 'in-progress' | 'destroy-incomplete'>
  | RejectionWithDetail<'plan-failed'>

export type UnlockOutcome =
  | { readonly kind: 'unlocked'; readonly id: string; readonly isLifted: boolean }
  | Rejection<'not-found' | 'in-progress' | 'idempotency-key-reused'>
  | RejectionWithDetail<'lock-not-recorded' | 'provisioning-unavailable'>

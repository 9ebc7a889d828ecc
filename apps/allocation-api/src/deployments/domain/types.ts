import type {
  DeploymentEvent,
  DeploymentResult,
  FieldFault,
  ObjectStorageKeys,
  ObjectStorageRegion,
} from '@pool/contract'
import type { PoolName, Rejection } from '../../allocation/domain/types.ts'

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

/** What a process has to know to start or resume a deployment. */
export interface RunState extends RunLease {
  readonly spec: DeploymentSpec
  /** SHA-256 of the token of the reservation; null without a name. */
  readonly reservationTokenHash: Buffer | null
  /** The outputs of the infrastructure, once it is up. */
  readonly result: DeploymentResult | null
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

/** Each kind except `created` is the error code of the response. */
export type CreateDecision =
  /** `deploymentToken`: only the client that created the deployment may see it. */
  | { readonly kind: 'created'; readonly id: string; readonly deploymentToken: string }
  | InvalidDeployment
  | Rejection<'subdomain-conflict' | 'bucket-conflict' | 'fqdn-conflict'>
  | {
      readonly kind: 'object-storage-unavailable' | 'provisioning-unavailable' | 'too-many-attempts'
      readonly detail: string
      readonly retryAfterSeconds?: number
    }

export type CreateOutcome = CreateDecision | Rejection<'idempotency-key-reused'>

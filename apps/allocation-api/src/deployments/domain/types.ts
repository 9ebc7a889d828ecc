import type { DeploymentEvent, DeploymentResult, ObjectStorageKeys, ObjectStorageRegion } from '@pool/contract'
import type { PoolName } from '../../allocation/domain/types.ts'

/** What is to be deployed: a request that was found good, in canonical form, without its keys. */
export interface DeploymentSpec {
  readonly orgName: string
  readonly orgEmail: string
  readonly sovereignFQDN: string
  /** In pool mode the name to take; null: the domain is the customer's own. */
  readonly name: PoolName | null
  readonly providers: readonly string[]
  readonly region: string
  readonly sshPublicKey: string
  /** Null: none of the chosen providers brings object storage. */
  readonly storage: { readonly region: ObjectStorageRegion; readonly bucket: string } | null
}

/** They live in the memory of the run alone. */
export type ObjectStorageCredentials = Omit<ObjectStorageKeys, 'region'>

export type Phase = DeploymentEvent['phase']
export type Level = DeploymentEvent['level']

/** A line of the log. */
export interface Line {
  readonly phase: Phase
  readonly level: Level
  readonly message: string
}

/** A line as it was stored; `seq` counts from 1 without a gap. */
export interface StoredLine extends Line {
  readonly seq: number
  readonly at: Date
}

/** The right to be the one who works on a deployment. A later generation ends the right of every earlier one. */
export interface Run {
  readonly id: string
  readonly generation: number
}

/** What a run, or whoever takes one up that was left, has to know. */
export interface Job extends Run {
  readonly order: DeploymentSpec
  /** Proves the reservation; null without a name. */
  readonly reservationToken: string | null
  /** What the infrastructure came to, once it is up. */
  readonly result: DeploymentResult | null
  readonly isCancelled: boolean
  /** Why it is to fail: decided by a run that did not come to the end of it. */
  readonly failure: string | null
  /** Lines of its log that are stored. */
  readonly lineCount: number
}

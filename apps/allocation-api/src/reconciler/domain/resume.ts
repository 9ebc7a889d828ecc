import type { Target } from '@pool/contract'
import type { RecordSet } from '../../dns/domain/rrset.ts'

/** Which side of a stopped zone is right where the two differ. */
export type Trust = 'database' | 'zone'

/**
 * What a resume does with a name. `publish`, `withdraw`: the records at the provider change; `adopt`: the name becomes active
 * with the target of its records, which ends a reservation or a cool-off; `readdress`: an active name gets the target of
 * its records; `release`: an active name without records becomes free. The last three end the validity of the name's token,
 * because its holder is not known.
 */
export type ResumeAction = 'publish' | 'withdraw' | 'adopt' | 'readdress' | 'release'

/** A name whose records differ from those that the database wants. */
export interface ZoneDifference {
  readonly subdomain: string
  /** The values of its records. Null: the name has no holder in the database. */
  readonly databaseAddress: string | null
  /** Null: the zone does not have all records of a target. */
  readonly zoneAddress: string | null
  readonly action: ResumeAction
}

/** A name that the database changes to what the zone has. */
export interface TrustedName extends ZoneDifference {
  readonly version: number
  /** That of the records of the zone; null: they are not those of a target. */
  readonly target: Target | null
  /** The record sets that the zone has, or none. */
  readonly desired: readonly RecordSet[]
}

export interface DecisionOptions {
  /** As in `ZoneDifference`. */
  readonly databaseAddress: string | null
  readonly zoneAddress: string | null
  /** The zone has some records of the name. */
  readonly hasRecords: boolean
  /** The database has written the records, as far as it knows. */
  readonly wasPublished: boolean
  /** The name was changed after the zone was stopped, so that the zone cannot have the change. */
  readonly isNewer: boolean
  /** A client could have the name. */
  readonly canBeAdopted: boolean
}

export const decideAction = (
  trust: Trust,
  { databaseAddress, zoneAddress, hasRecords, wasPublished, isNewer, canBeAdopted }: DecisionOptions,
): ResumeAction => {
  const trustsZone = trust === 'zone' && !isNewer
  if (databaseAddress === null) return trustsZone && zoneAddress !== null && canBeAdopted ? 'adopt' : 'withdraw'
  if (!trustsZone || zoneAddress === databaseAddress) return 'publish'
  if (zoneAddress !== null) return 'readdress'
  // Of records that are not a target's, nothing else is known.
  return hasRecords || !wasPublished ? 'publish' : 'release'
}

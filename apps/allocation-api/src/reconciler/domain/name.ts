import type { RecordSet } from '../../dns/domain/rrset.ts'
import type { FailureCause } from './status.ts'

export interface OwnedKey {
  readonly name: string
  readonly type: string
}

/** The desired records of a name, and the records that the provider may have because this service wrote them. */
export interface DesiredName {
  readonly subdomain: string
  readonly desired: readonly RecordSet[]
  /** Record sets that the provider accepted. The service owns them even if another writer has edited them. */
  readonly owned: readonly OwnedKey[]
  /** Desired earlier. They may exist, or reappear with exactly these values: a timed-out write can take effect late. */
  readonly previous: readonly RecordSet[]
  /** An earlier write was not confirmed: it may still take effect, whatever the provider shows now. */
  readonly hasInFlightWrite: boolean
  /** The name has no holder, or a new one: every record set at or below it that is not desired is deleted. */
  readonly isPurged: boolean
}

/** A name with an unapplied version whose next attempt is due. */
export interface DueName extends DesiredName {
  readonly version: number
  /** A drift check found that the provider no longer had the records. */
  readonly isDriftRepair: boolean
  /** Consecutive failures, those of an outage apart from others. */
  readonly attempts: number
  /** Null: the last attempt did not fail. */
  readonly failure: FailureCause | null
}

/** A name as a drift check sees it, due or not. */
export interface CheckedName extends DesiredName {
  readonly version: number
  /** The provider was brought to this version; if not, the name is due whatever the drift check finds. */
  readonly isApplied: boolean
  /** Milliseconds since; null: never. */
  readonly appliedMsAgo: number | null
  readonly changedMsAgo: number
  /** A drift check found that the provider no longer had the records. */
  readonly isDriftRepair: boolean
}

export interface NameVersion {
  readonly subdomain: string
  readonly version: number
}

/** The desired records of a name in one version. */
export interface DesiredRecords extends NameVersion {
  readonly desired: readonly RecordSet[]
}

import type { DnsState } from '@pool/contract'
import { STOP_CAUSES } from './zone-marker.ts'

/**
 * Why a name's records could not be applied; it decides when the next attempt is. `provider`: the provider is
 * unavailable; `zone`: only for this zone; `rejected`: the provider does not accept the records of this name;
 * `foreign-record`: a record that the service does not own, or another zone, is in the way; the others: nothing is written to the zone until
 * an operator resumes it.
 */
export const FAILURE_CAUSES = ['provider', 'zone', 'rejected', 'foreign-record', ...STOP_CAUSES] as const
export type FailureCause = (typeof FAILURE_CAUSES)[number]

/** The desired and the applied version of a name's records; null if it has no row, so nothing is desired or left. */
export interface SyncStatus {
  readonly version: number
  readonly appliedVersion: number
  /** Why the last attempt failed; of an applied version, what the provider still has of an earlier holder. */
  readonly lastError: string | null
}

/** The status on the wire, for the version that the name has now. */
export const toDnsState = (status: SyncStatus | null): DnsState => {
  if (!status) return { status: 'published' }
  const isApplied = status.appliedVersion >= status.version
  if (isApplied) return { status: 'published', ...(status.lastError === null ? {} : { detail: status.lastError }) }
  if (status.lastError === null) return { status: 'pending' }
  return { status: 'failing', detail: status.lastError }
}

/**
 * The status of the withdrawal with this version. The status of a newer version is not for the previous client: it can be that
 * of the next one.
 */
export const toWithdrawalState = (status: SyncStatus | null, version: number): DnsState => {
  if (!status || status.appliedVersion >= version) return { status: 'published' }
  return status.version > version ? { status: 'pending' } : toDnsState(status)
}

/**
 * Whether a caller need not wait for `version` any longer: it is applied, replaced by a newer one, or failed.
 * `isTransient`: the next attempt may succeed while the caller waits.
 */
export const isDecided = (status: SyncStatus | null, version: number, isTransient: boolean): boolean =>
  !status || status.appliedVersion >= version || (status.lastError !== null && !isTransient)

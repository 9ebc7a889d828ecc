import type { DnsState } from '@pool/contract'

/**
 * Why a name's records could not be applied; whose trouble it is decides when they are tried again. `provider`: it was
 * available to nobody; `zone`: not for this zone; `refused`: it does not take this name's records; `foreign-record`:
 * somebody else's record stands in the way.
 */
export const FAILURE_CAUSES = ['provider', 'zone', 'refused', 'foreign-record'] as const
export type FailureCause = (typeof FAILURE_CAUSES)[number]

/** How far one name has been brought to its desired records; null where it has no row: nothing desired, nothing left. */
export interface SyncStatus {
  readonly version: number
  readonly appliedVersion: number
  readonly lastError: string | null
}

/** The state that the wire shows for the version that the name has now. */
export const toDnsState = (progress: SyncStatus | null): DnsState => {
  if (!progress || progress.appliedVersion >= progress.version) return { status: 'published' }
  if (progress.lastError === null) return { status: 'pending' }
  return { status: 'failing', detail: progress.lastError }
}

/** Whether a caller that waits for `version` has its answer: it is out, replaced by a newer one, or has failed once. */
export const isSettled = (progress: SyncStatus | null, version: number): boolean =>
  !progress || progress.appliedVersion >= version || progress.lastError !== null

import type { DnsState } from '@pool/contract'

/** How far one name has been brought to its desired records; null where it has no row: nothing desired, nothing left. */
export interface Progress {
  readonly version: number
  readonly appliedVersion: number
  readonly lastError: string | null
}

/** The state that the wire shows for the version that the name has now. */
export const dnsStateOf = (progress: Progress | null): DnsState => {
  if (!progress || progress.appliedVersion >= progress.version) return { status: 'published' }
  if (progress.lastError === null) return { status: 'pending' }
  return { status: 'failing', detail: progress.lastError }
}

/** Whether a caller that waits for `version` has its answer: it is out, replaced by a newer one, or has failed once. */
export const isSettled = (progress: Progress | null, version: number): boolean =>
  !progress || progress.appliedVersion >= version || progress.lastError !== null

import type { CopyState } from '../kv-copy/domain/schedule.ts'
import type { LeaseState } from '../lease/lease.ts'

/** The whole state of a slot in one value, so that each write of it is atomic. */
export interface StoredSlot extends CopyState {
  readonly slot: string
  readonly lease: LeaseState
  /** Another system may have continued from the copy since: the record in Workers KV decides until the next write. */
  readonly isDrained?: true
}

/** A lease as version 1.0 stored it: `renewedAt` instead of `writtenAt`, and no times in a released lease. */
type StoredLease =
  | LeaseState
  | (Partial<LeaseState> & { readonly kind: LeaseState['kind']; readonly renewedAt?: number })

/** The stored state of a slot, also as an older version stored it. */
export const toStoredSlot = (value: Omit<StoredSlot, 'lease'> & { readonly lease: StoredLease }): StoredSlot => {
  const { lease } = value
  if (lease.writtenAt !== undefined) return { ...value, lease: lease as LeaseState }
  const { renewedAt: writtenAt = 0, ...rest } = lease as { readonly renewedAt?: number }
  return { ...value, lease: { acquiredAt: 0, ...rest, writtenAt } as LeaseState }
}

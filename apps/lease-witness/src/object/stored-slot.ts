import { copyKey } from '../kv-copy/domain/keys.ts'
import { toTakenOver } from '../kv-copy/domain/records.ts'
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

/** A slot as an older version stored it: with the record that it took over, but not its key. */
type OldSlot = Omit<StoredSlot, 'lease' | 'takenOver'> & {
  readonly lease: StoredLease
  readonly takenOver?: string | StoredSlot['takenOver']
}

/** The stored state of a slot, also as an older version stored it. */
export const toStoredSlot = ({ takenOver: old, ...slot }: OldSlot): StoredSlot => {
  const takenOver = typeof old === 'string' ? toTakenOver(slot.slot, [{ key: copyKey(slot.slot), value: old }]) : old
  const value = { ...slot, ...(takenOver ? { takenOver } : {}) }
  const { lease } = value
  if (lease.writtenAt !== undefined) return { ...value, lease: lease as LeaseState }
  const { renewedAt: writtenAt = 0, ...rest } = lease as { readonly renewedAt?: number }
  return { ...value, lease: { acquiredAt: 0, ...rest, writtenAt } as LeaseState }
}

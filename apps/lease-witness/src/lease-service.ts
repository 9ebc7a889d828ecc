import type { Lease, LeaseHistory, LeaseList, LeaseListQuery } from '@pool/contract/lease'
import type { LeaseRequest } from './lease/lease.ts'
import type { Known } from './lease/precondition.ts'
import type { SlotAddress } from './lease/slot-name.ts'

/** Why a slot did not decide. A write that ends so may have been made or not: whoever sent it reads, and compares. */
export type Unavailable =
  | { readonly kind: 'overloaded' }
  /** The object is restarting, or Workers KV could not tell whether an older deployment left a lease here. */
  | { readonly kind: 'lease-unavailable' }
  /** An older deployment left a record here that is no lease: a person has to look at it. */
  | { readonly kind: 'invalid-lease-record'; readonly key: string }

/** A wish to be answered later, once there is something to tell. */
export interface Wait {
  /** Names the wait for `forget`. */
  readonly id: string
  readonly forMs: number
}

export interface ReadRequest {
  /** The generations of which nothing new has to be told. */
  readonly known: Known
  readonly wait: Wait | undefined
}

export type ReadOutcome =
  | { readonly kind: 'lease'; readonly lease: Lease }
  | { readonly kind: 'not-modified'; readonly lease: Lease }
  | { readonly kind: 'absent' }
  | Unavailable

export type WriteOutcome =
  | { readonly kind: 'granted' | 'released'; readonly lease: Lease }
  | {
      readonly kind: 'refused'
      readonly why: 'generation' | 'held' | 'not-holder' | 'expired'
      readonly lease: Lease
    }
  | { readonly kind: 'absent' }
  | Unavailable

export type HistoryOutcome =
  | { readonly kind: 'history'; readonly transitions: LeaseHistory['transitions'] }
  | { readonly kind: 'absent' }
  | Unavailable

/**
 * The slots, as the routes see them. Reads and writes of one slot are linearizable; a write that was answered is durable.
 */
export interface Witness {
  readonly read: (at: SlotAddress, request: ReadRequest) => Promise<ReadOutcome>
  readonly write: (at: SlotAddress, request: LeaseRequest) => Promise<WriteOutcome>
  readonly history: (at: SlotAddress) => Promise<HistoryOutcome>
  /** Ends a wait whose caller has gone. */
  readonly forget: (at: SlotAddress, waitId: string) => Promise<void>
}

export type ListOutcome =
  | { readonly kind: 'listed'; readonly leases: LeaseList['leases']; readonly nextCursor: string | undefined }
  | { readonly kind: 'copy-unavailable' }

/** The copies of all slots: eventually consistent, never asked to decide. */
export interface Copies {
  readonly list: (query: LeaseListQuery) => Promise<ListOutcome>
}

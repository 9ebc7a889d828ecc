import type { Lease, LeaseHistory, LeaseList, LeaseListQuery } from '@pool/contract/lease'
import type { KnownGenerations, LeaseWrite, RejectionReason } from './lease/lease.ts'
import type { SlotAddress } from './lease/request.ts'

/** Why a slot did not decide. Such a write may or may not have taken effect: the client reads the lease and compares. */
export type SlotUnavailable =
  | { readonly kind: 'overloaded' }
  /** The Durable Object is restarting, or a read of legacy records in Workers KV failed. */
  | { readonly kind: 'lease-unavailable' }
  /** The legacy record of this slot is not a valid lease: an operator has to look at it. */
  | { readonly kind: 'invalid-lease-record'; readonly key: string }

/** A long poll. */
export interface Wait {
  /** Identifies the wait for `cancelWait`. */
  readonly id: string
  readonly maxMs: number
}

export interface ReadRequest {
  /** The generations that the reader already has. */
  readonly known: KnownGenerations
  /** Undefined: respond immediately. */
  readonly wait: Wait | undefined
}

export type ReadOutcome =
  | { readonly kind: 'lease'; readonly lease: Lease }
  | { readonly kind: 'not-modified'; readonly lease: Lease }
  | { readonly kind: 'absent' }
  | SlotUnavailable

export type WriteOutcome =
  | { readonly kind: 'granted' | 'released'; readonly lease: Lease }
  | { readonly kind: 'rejected'; readonly reason: RejectionReason; readonly lease: Lease }
  | { readonly kind: 'absent' }
  | SlotUnavailable

export type HistoryOutcome =
  | { readonly kind: 'history'; readonly transitions: LeaseHistory['transitions'] }
  | { readonly kind: 'absent' }
  | SlotUnavailable

/** Port: the leases. Reads and writes of one slot are linearizable; an acknowledged write is durable. */
export interface LeaseService {
  readonly read: (address: SlotAddress, request: ReadRequest) => Promise<ReadOutcome>
  readonly write: (address: SlotAddress, request: LeaseWrite) => Promise<WriteOutcome>
  readonly history: (address: SlotAddress) => Promise<HistoryOutcome>
  /** Ends the wait of a client that has disconnected. */
  readonly cancelWait: (address: SlotAddress, waitId: string) => Promise<void>
}

export type LeaseListOutcome =
  | { readonly kind: 'listed'; readonly leases: LeaseList['leases']; readonly nextCursor: string | undefined }
  | { readonly kind: 'copy-unavailable' }

/** Port: the copies of all leases. Eventually consistent; never used for a decision. */
export interface LeaseDirectory {
  readonly list: (query: LeaseListQuery) => Promise<LeaseListOutcome>
}

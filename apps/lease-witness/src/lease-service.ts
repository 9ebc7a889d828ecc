import type {
  DrainLeasesRequest,
  DrainLeasesResponse,
  Lease,
  LeaseHistory,
  LeaseList,
  LeaseListQuery,
} from '@pool/contract/lease'
import {
  includesGeneration,
  type KnownGenerations,
  type LeaseState,
  type LeaseWrite,
  type RejectionReason,
  toRemainingMs,
  toWireLease,
  type WaitCondition,
} from './lease/lease.ts'
import type { SlotAddress } from './lease/request.ts'

/** Why a slot did not decide. Such a write may or may not have taken effect: the client reads the lease and compares. */
export type SlotUnavailable =
  /** `reason` is the error text of the platform or of the database, for the log only. */
  | { readonly kind: 'overloaded' | 'lease-unavailable' | 'draining'; readonly reason?: string }
  /** The legacy record of this slot is not a valid lease: an operator has to look at it. */
  | { readonly kind: 'invalid-lease-record'; readonly key: string }

/** A lease and its remaining time, both as of the moment of the decision. */
export interface ObservedLease {
  readonly lease: Lease
  /** Milliseconds until a held lease expires; 0 if it has expired. Undefined: no client holds it. */
  readonly remainingMs: number | undefined
}

/** `now` is the time of the slot, here and below. */
export const toObservedLease = (current: LeaseState | undefined, now: number): ObservedLease => ({
  lease: toWireLease(current),
  remainingMs: toRemainingMs(current, now),
})

export type LeaseReading = ({ readonly kind: 'lease' | 'not-modified' } & ObservedLease) | { readonly kind: 'absent' }

/** `known`: the generations that the reader has. */
export const toReading = (current: LeaseState | undefined, now: number, known: KnownGenerations = []): LeaseReading => {
  if (!current) return { kind: 'absent' }
  const isKnown = includesGeneration(known, current.generation)
  return { kind: isKnown ? 'not-modified' : 'lease', ...toObservedLease(current, now) }
}

export type ReadOutcome = LeaseReading | SlotUnavailable

/** A lease with the number of clients that wait for a change of it. */
export type LeaseStatusOutcome =
  | ({ readonly kind: 'lease'; readonly waiters: number } & ObservedLease)
  | { readonly kind: 'absent'; readonly waiters: number }
  /** A bug showed at this slot only. */
  | { readonly kind: 'internal-error'; readonly error: unknown }
  | SlotUnavailable

export const toStatus = (current: LeaseState | undefined, now: number, waiters: number): LeaseStatusOutcome =>
  current ? { kind: 'lease', waiters, ...toObservedLease(current, now) } : { kind: 'absent', waiters }

export interface WaitRequest {
  /** Identifies the token of the request: where there is no room, the one with the most waits loses its oldest. */
  readonly caller: string
  readonly condition: WaitCondition
  /** The generations that the reader already has. They decide between `lease` and `not-modified` after `maxMs`. */
  readonly known: KnownGenerations
  readonly maxMs: number
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
}

export type WriteOutcome =
  /** `granted`: a new tenure. */
  | ({ readonly kind: 'granted' | 'renewed' | 'released' } & ObservedLease)
  | ({ readonly kind: 'rejected'; readonly reason: RejectionReason } & ObservedLease)
  | { readonly kind: 'absent' }
  | SlotUnavailable

export type HistoryOutcome =
  | { readonly kind: 'history'; readonly transitions: LeaseHistory['transitions'] }
  | { readonly kind: 'absent' }
  | SlotUnavailable

/** Port: the leases. Reads and writes of one slot are linearizable; an acknowledged write is durable. */
export interface LeaseService {
  readonly read: (address: SlotAddress, known: KnownGenerations) => Promise<ReadOutcome>
  /**
   * Ends when the condition holds (`lease` or `absent`), after `maxMs`, or when the signal is aborted; then no client
   * receives the outcome.
   */
  readonly wait: (address: SlotAddress, request: WaitRequest) => Promise<ReadOutcome>
  /** `caller` identifies the token of the request in the history; empty if it is unknown. */
  readonly write: (address: SlotAddress, request: LeaseWrite, caller: string) => Promise<WriteOutcome>
  readonly history: (address: SlotAddress) => Promise<HistoryOutcome>
  /** The outcomes are in the order of the addresses. */
  readonly readMany: (addresses: readonly SlotAddress[]) => Promise<readonly LeaseStatusOutcome[]>
  /** Whether the service can respond to requests. */
  readonly checkHealth: () => Promise<boolean>
}

export type LeaseListOutcome =
  | { readonly kind: 'listed'; readonly leases: LeaseList['leases']; readonly nextCursor: string | undefined }
  /** `detail` is for the client; `reason` is for the log only. */
  | { readonly kind: 'copy-unavailable'; readonly reason: string; readonly detail: string }

/** Port: the copies of all leases. Eventually consistent; never used for a decision. */
export interface LeaseDirectory {
  readonly list: (query: LeaseListQuery) => Promise<LeaseListOutcome>
}

export type DrainOutcome =
  | { readonly kind: 'drained'; readonly result: DrainLeasesResponse }
  | { readonly kind: 'copy-unavailable'; readonly reason: string }
  /** The witness accepts writes, so nothing can be drained. */
  | { readonly kind: 'not-draining' }

/** Port: moves the leases back to a system that keeps them in Workers KV. */
export interface LeaseDrain {
  readonly drain: (request: DrainLeasesRequest) => Promise<DrainOutcome>
}

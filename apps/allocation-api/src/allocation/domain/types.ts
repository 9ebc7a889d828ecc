import type { ActiveAllocation, Allocation, DnsState, HistoryEntry, ReservedAllocation } from '@pool/contract'
import type { Pages } from '../../lib/paginate.ts'
import type { NameRejection } from '../../naming/naming.ts'

/** A name of a pool. Both parts are in canonical form. */
export interface PoolName {
  readonly poolDomain: string
  readonly subdomain: string
}

/** The origin of a request, for the history. */
export interface Caller {
  /** The listener that received the request, or the component that acts without one. */
  readonly actor: 'in-cluster' | 'operator' | 'deployment'
  readonly address: string | null
  readonly requestId: string
}

export interface ReserveCommand extends PoolName {
  readonly createdBy: string
}

/** One reservation of a batch. */
export interface ReserveRequest {
  readonly command: ReserveCommand
  /** SHA-256 of the token of the new reservation. */
  readonly tokenHash: Buffer
  readonly caller: Caller
}

export interface RenewCommand extends PoolName {
  /** SHA-256 of the reservation token. */
  readonly tokenHash: Buffer
}

export interface CommitCommand extends RenewCommand {
  readonly sovereignFQDN: string
  readonly loadBalancerIP: string
}

export interface ReleaseCommand extends PoolName {
  /** If present, it must be the hash of the allocation's token. */
  readonly tokenHash?: Buffer | undefined
}

export interface ReservationLimits {
  readonly ttlMs: number
  /** Milliseconds from the reservation to the latest expiry that a renewal can reach. */
  readonly maxAgeMs: number
}

export interface ListQuery {
  readonly state?: Allocation['state'] | undefined
  readonly limit?: number | undefined
  /** The subdomain after which the list starts. */
  readonly cursor?: string | undefined
}

export interface HistoryQuery {
  /** One name of the pool. */
  readonly sub?: string | undefined
  readonly limit?: number | undefined
  /** The id of the entry before which the list starts. */
  readonly cursor?: string | undefined
}

/** Nothing was changed. The kind is the error code of the response. */
export type Rejection<Kind extends string> = { readonly kind: Kind }
export type TokenRejection = Rejection<'not-found' | 'already-active' | 'reservation-expired' | 'token-mismatch'>

/** An active allocation without the status of its records, which dns_names holds. */
export type ActiveWithoutDns = Omit<ActiveAllocation, 'dns'>

export interface ListPage {
  /** The subdomain after which the page starts; empty for the first page. */
  readonly after: string
  readonly limit: number
  readonly state?: Allocation['state'] | undefined
}

export interface HistoryPage {
  /** One name of the pool; absent: the whole pool. */
  readonly subdomain?: string | undefined
  /** The id of the entry before which the page starts; absent: the newest entries. */
  readonly before?: number | undefined
  readonly limit: number
}

export interface AllocationCount {
  readonly poolDomain: string
  readonly state: Allocation['state']
  readonly count: number
}

// What one statement of the repository decides.

export interface Granted {
  readonly kind: 'granted'
  readonly allocation: ReservedAllocation
}
export type ReserveDecision = Granted | Rejection<'conflict'>

export interface Committed {
  readonly kind: 'committed'
  readonly allocation: ActiveWithoutDns
  /** The version of the desired records. */
  readonly version: number
}
export type CommitDecision = Committed | TokenRejection

export type RenewDecision = { readonly kind: 'renewed'; readonly allocation: ReservedAllocation } | TokenRejection

export interface Released {
  readonly kind: 'released'
  /** The allocation before its release. */
  readonly allocation: Allocation
  /** The version that withdraws the records; null if the name never had records. */
  readonly version: number | null
}
export type ReleaseDecision = Released | Rejection<'not-found' | 'token-mismatch'>

// What an operation of the service returns.

export type GetOutcome =
  | { readonly kind: 'found'; readonly allocation: Allocation }
  | NameRejection
  | Rejection<'not-found'>

export interface GrantedWithToken extends Granted {
  readonly reservationToken: string
}
export type ReserveOutcome =
  | GrantedWithToken
  | Rejection<'conflict'>
  | NameRejection
  | Rejection<'idempotency-key-reused'>

export type CommitOutcome =
  | { readonly kind: 'committed'; readonly allocation: ActiveAllocation }
  | TokenRejection
  | NameRejection
  | Rejection<'idempotency-key-reused'>

export type RenewOutcome = RenewDecision | NameRejection

export type ReleaseOutcome =
  /** `withdrawal` is `published` once the provider no longer has the records. */
  | { readonly kind: 'released'; readonly freed: Allocation; readonly withdrawal: DnsState }
  | Rejection<'not-found' | 'token-mismatch' | 'idempotency-key-reused'>
  | NameRejection

export type ListOutcome<Item> = { readonly kind: 'listed'; readonly pages: Pages<Item> } | NameRejection

/** A history entry with its id, which is the cursor of the history. */
export interface EntryWithId {
  readonly id: number
  readonly entry: HistoryEntry
}

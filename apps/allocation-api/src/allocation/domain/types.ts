import type {
  ActiveAllocation,
  Allocation,
  DnsState,
  HistoryEntry,
  ReservedAllocation,
  Target,
  TargetChange,
} from '@pool/contract'
import type { Pages } from '../../lib/paginate.ts'
import type { NameRejection, PoolName } from '../../naming/naming.ts'
import type { StoredRecords } from '../../records/domain/stored.ts'

export interface ReserveCommand extends PoolName {
  readonly createdBy: string
  /** SHA-256 of the token of the released allocation, whose client takes the name back during the cool-off. */
  readonly formerTokenHash?: Buffer | undefined
}

export interface RenewCommand extends PoolName {
  /** SHA-256 of the reservation token. */
  readonly tokenHash: Buffer
}

export interface CommitCommand extends RenewCommand {
  readonly sovereignFQDN: string
  readonly target: Target
}

/** A reservation by a deployment, which makes its token itself and stores only the hash. */
export interface RetakeCommand extends RenewCommand {
  readonly createdBy: string
  readonly lineageId: string
  /** SHA-256 of the token of the deployment's former reservation. */
  readonly formerTokenHash?: Buffer | undefined
}

/** A change of an active name. What is absent stays. */
export interface UpdateCommand extends PoolName {
  /** If present, it must be the hash of the allocation's token. */
  readonly tokenHash?: Buffer | undefined
  readonly change?: TargetChange | undefined
  readonly sovereignFQDN?: string | undefined
}

export interface ReleaseCommand extends PoolName {
  /** If present, it must be the hash of the allocation's token. */
  readonly tokenHash?: Buffer | undefined
  /** SHA-256 of the token of the deployment that holds the name. It stands for the token of the name where that is required. */
  readonly deploymentTokenHash?: Buffer | undefined
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
export interface InvalidField {
  readonly kind: 'invalid-fqdn' | 'invalid-lb-ip' | 'invalid-lb-hostname' | 'invalid-nameservers' | 'invalid-target'
  readonly detail: string
}
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
  /** `held`: a lineage still has infrastructure under a name that its client no longer has. */
  readonly state: Allocation['state'] | 'cooling-off' | 'held'
  readonly count: number
}

// What one statement of the repository decides.

export interface Granted {
  readonly kind: 'granted'
  readonly allocation: ReservedAllocation
}
/** The name was released. Only its former holder can reserve it before `availableAt` (RFC 3339). */
export interface CoolingOff {
  readonly kind: 'cooling-off'
  readonly availableAt: string
}
export type ReserveDecision = Granted | Rejection<'conflict'> | CoolingOff

/** Why a name is not free; null if it is. `pool`: no client can have it, because it is at or above a pool. */
export type NameState = Allocation['state'] | 'pool' | CoolingOff | null

export interface Committed {
  readonly kind: 'committed'
  readonly allocation: ActiveWithoutDns
  /** The version of the desired records. */
  readonly version: number
}
export type CommitDecision = Committed | TokenRejection

/** What a tenant has set, and how often that was changed. */
export interface TenantRecords {
  readonly revision: number
  readonly records: StoredRecords
}

export interface Updated {
  readonly kind: 'updated'
  readonly allocation: ActiveWithoutDns
  /** The version of the new records; null if the target is the same as before. */
  readonly version: number | null
}
export type UpdateDecision =
  | Updated
  /** The name has another target, or other records of its tenant, than the change was planned for. */
  | { readonly kind: 'target-changed'; readonly current: Target; readonly tenant: TenantRecords }
  | Rejection<'not-found' | 'not-active' | 'token-mismatch'>

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
  | CoolingOff
  | NameRejection
  | Rejection<'idempotency-key-reused'>

export type CommitOutcome =
  | { readonly kind: 'committed'; readonly allocation: ActiveAllocation }
  | TokenRejection
  | InvalidField
  | NameRejection
  /** `conflict`: the request is a repetition, and the name has passed to another client since. */
  | Rejection<'conflict' | 'idempotency-key-reused'>

/** Records that the tenant has set exclude the new target. */
export interface TargetConflict {
  readonly kind: 'record-conflict'
  readonly detail: string
}

export type UpdateOutcome =
  | { readonly kind: 'updated'; readonly allocation: ActiveAllocation }
  | Exclude<UpdateDecision, Updated | { kind: 'target-changed' }>
  | TargetConflict
  | InvalidField
  | NameRejection
  | Rejection<'conflict' | 'idempotency-key-reused'>

/** `held`: the lineage has the name already. */
export type RetakeOutcome = Granted | Rejection<'held' | 'conflict'> | CoolingOff | NameRejection

export type CoolOffOutcome =
  | { readonly kind: 'lifted' }
  | (Rejection<'not-found'> & { readonly detail: string })
  | NameRejection

/** Why an action on a name would be rejected. */
export type ActionObstacle =
  | InvalidField
  | TargetConflict
  | NameRejection
  | (Rejection<'not-found' | 'not-active' | 'token-mismatch'> & { readonly detail?: string })

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

import type { Allocation, DnsState, HistoryEntry, ReservedAllocation } from '@pool/contract'
import { type SyncStatus, toDnsState } from '../../reconciler/domain/status.ts'
import type {
  ActiveWithoutDns,
  CommitDecision,
  EntryWithId,
  Granted,
  ReleaseDecision,
  RenewDecision,
  ReserveDecision,
  TokenRejection,
} from './types.ts'

/** A `Date` in a row of the driver, a string in a result that was stored as JSON. */
type Timestamp = Date | string

/** A row of pool_allocations. */
export interface AllocationRow {
  readonly poolDomain: string
  readonly subdomain: string
  readonly state: 'reserved' | 'active'
  readonly reservedAt: Timestamp
  readonly createdBy: string
  readonly expiresAt: Timestamp | null
  readonly sovereignFQDN: string | null
  readonly loadBalancerIP: string | null
  readonly committedAt: Timestamp | null
}

/** A row joined with dns_names; the three columns are null if the name has no desired records. */
export interface AllocationRowWithDns extends AllocationRow {
  readonly version: number | null
  readonly appliedVersion: number | null
  readonly lastError: string | null
}

export interface HistoryRow {
  readonly id: number
  readonly poolDomain: string
  readonly subdomain: string
  readonly at: Date
  readonly event: HistoryEntry['event']
  readonly from: HistoryEntry['from']
  readonly to: HistoryEntry['to']
  readonly actor: HistoryEntry['actor']
  readonly address: string | null
  readonly createdBy: string
  readonly requestId: string | null
  readonly detail: string | null
}

/**
 * The row that a deciding statement returns, which is also the JSON stored under its Idempotency-Key. The columns of the
 * row are null unless the operation succeeded.
 */
type StatementResult<Success extends string, Columns, Rejected extends string> =
  | (Columns & { readonly outcome: Success })
  | { readonly outcome: Rejected }

export type ReserveResult = StatementResult<
  'granted',
  AllocationRow & { readonly reservationToken: string | null },
  'conflict'
>
export type CommitResult = StatementResult<
  'committed',
  AllocationRow & { readonly version: number },
  TokenRejection['kind']
>
export type RenewResult = StatementResult<'renewed', AllocationRow, TokenRejection['kind']>
export type ReleaseResult = StatementResult<
  'released',
  AllocationRowWithDns & { readonly withdrawalVersion: number | null },
  'not-found' | 'token-mismatch'
>

/** The check constraints of the table guarantee the timestamps that each state requires. */
const toIsoString = (at: Timestamp | null): string => {
  if (at === null) throw new Error('pool_allocations: a timestamp that the state of the row requires is null')
  return (typeof at === 'string' ? new Date(at) : at).toISOString()
}

const commonFields = (row: AllocationRow) => ({
  poolDomain: row.poolDomain,
  subdomain: row.subdomain,
  reservedAt: toIsoString(row.reservedAt),
  createdBy: row.createdBy,
})

const toReservedAllocation = (row: AllocationRow): ReservedAllocation => ({
  ...commonFields(row),
  state: 'reserved',
  expiresAt: toIsoString(row.expiresAt),
})

const toActiveAllocation = (row: AllocationRow): ActiveWithoutDns => ({
  ...commonFields(row),
  state: 'active',
  sovereignFQDN: row.sovereignFQDN ?? '',
  loadBalancerIP: row.loadBalancerIP ?? '',
  committedAt: toIsoString(row.committedAt),
})

const toSyncStatus = (row: AllocationRowWithDns): SyncStatus | null =>
  row.version === null || row.appliedVersion === null
    ? null
    : { version: row.version, appliedVersion: row.appliedVersion, lastError: row.lastError }

/** An active name always has desired records. A statement that started before they were committed does not see them. */
const currentDns = (row: AllocationRowWithDns): DnsState => {
  const status = toSyncStatus(row)
  return status ? toDnsState(status) : { status: 'pending' }
}

export const toAllocation = (row: AllocationRowWithDns): Allocation =>
  row.state === 'reserved' ? toReservedAllocation(row) : { ...toActiveAllocation(row), dns: currentDns(row) }

export const toGranted = (row: AllocationRow): Granted => ({ kind: 'granted', allocation: toReservedAllocation(row) })

export const toReserveDecision = (result: ReserveResult): ReserveDecision =>
  result.outcome === 'granted' ? toGranted(result) : { kind: result.outcome }

export const toCommitDecision = (result: CommitResult): CommitDecision =>
  result.outcome === 'committed'
    ? { kind: result.outcome, allocation: toActiveAllocation(result), version: result.version }
    : { kind: result.outcome }

export const toRenewDecision = (result: RenewResult): RenewDecision =>
  result.outcome === 'renewed'
    ? { kind: result.outcome, allocation: toReservedAllocation(result) }
    : { kind: result.outcome }

export const toReleaseDecision = (result: ReleaseResult): ReleaseDecision =>
  result.outcome === 'released'
    ? { kind: result.outcome, allocation: toAllocation(result), version: result.withdrawalVersion }
    : { kind: result.outcome }

export const toHistoryEntry = ({ id, at, address, requestId, detail, ...row }: HistoryRow): EntryWithId => ({
  id,
  entry: {
    ...row,
    at: at.toISOString(),
    ...(address === null ? {} : { address }),
    ...(requestId === null ? {} : { requestId }),
    ...(detail === null ? {} : { detail }),
  },
})

import type { Allocation, DnsState, ReservedAllocation, Target } from '@pool/contract'
import { type SyncStatus, toDnsState } from '../reconciler/domain/status.ts'
import type { ActiveWithoutDns, CoolingOff, Granted, NameState } from './domain/types.ts'

/** A `Date` in a row of the driver, a string in an outcome that was stored as JSON. */
export type Timestamp = Date | string

/** What a reservation has of a row of pool_allocations. */
export interface ReservationRow {
  readonly poolDomain: string
  readonly subdomain: string
  readonly reservedAt: Timestamp
  readonly createdBy: string
  readonly expiresAt: Timestamp | null
}

/** A row of pool_allocations. */
export interface AllocationRow extends ReservationRow {
  readonly state: 'reserved' | 'active'
  readonly sovereignFQDN: string | null
  readonly loadBalancerIP: string | null
  /** Null if it is the address alone; absent in an outcome that an older build stored. */
  readonly target?: Target | null
  readonly committedAt: Timestamp | null
}

/** A row joined with dns_names; the three columns are null if the name has no desired records. */
export interface AllocationRowWithDns extends AllocationRow {
  readonly version: number | null
  readonly appliedVersion: number | null
  readonly lastError: string | null
}

/** A row of the lookup of a name; null if the name is free. */
export interface NameStateRow {
  readonly state: Allocation['state'] | 'pool' | 'cooling-off' | null
  /** Not null if the state is `cooling-off`. */
  readonly availableAt: Timestamp | null
}

/** The check constraints of the table guarantee the timestamps that each state requires. */
const toIsoString = (at: Timestamp | null): string => {
  if (at === null) throw new Error('pool_allocations: a timestamp that the state of the row requires is null')
  return (typeof at === 'string' ? new Date(at) : at).toISOString()
}

const commonFields = (row: ReservationRow) => ({
  poolDomain: row.poolDomain,
  subdomain: row.subdomain,
  reservedAt: toIsoString(row.reservedAt),
  createdBy: row.createdBy,
})

export const toReservedAllocation = (row: ReservationRow): ReservedAllocation => ({
  ...commonFields(row),
  state: 'reserved',
  expiresAt: toIsoString(row.expiresAt),
})

export const toGranted = (row: ReservationRow): Granted => ({ kind: 'granted', allocation: toReservedAllocation(row) })

export const toTarget = ({ target, loadBalancerIP }: Pick<AllocationRow, 'target' | 'loadBalancerIP'>): Target =>
  target ?? (loadBalancerIP === null ? {} : { loadBalancerIP })

export const toActiveAllocation = (row: AllocationRow): ActiveWithoutDns => ({
  ...commonFields(row),
  state: 'active',
  sovereignFQDN: row.sovereignFQDN ?? '',
  ...toTarget(row),
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

export const toCoolingOff = ({ availableAt }: Pick<NameStateRow, 'availableAt'>): CoolingOff => ({
  kind: 'cooling-off',
  availableAt: toIsoString(availableAt),
})

export const toNameState = ({ state, availableAt }: NameStateRow): NameState =>
  state === 'cooling-off' ? toCoolingOff({ availableAt }) : state

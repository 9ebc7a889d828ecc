import type { Allocation, DnsState, ReservedAllocation } from '@pool/contract'
import { dnsStateOf, type Progress } from '../../reconciler/domain/status.ts'
import type { ActiveRow } from './types.ts'

/** A time as the driver reads it from a column, or as it stands in a remembered decision. */
type Instant = Date | string

/** A row of the table as the store selects it. */
export interface Row {
  readonly poolDomain: string
  readonly subdomain: string
  readonly state: 'reserved' | 'active'
  readonly reservedAt: Instant
  readonly createdBy: string
  readonly expiresAt: Instant | null
  readonly sovereignFQDN: string | null
  readonly loadBalancerIP: string | null
  readonly committedAt: Instant | null
}

/** A row joined with the progress of its records; all null where the name has no desired records. */
export interface RowWithProgress extends Row {
  readonly version: number | null
  readonly appliedVersion: number | null
  readonly lastError: string | null
}

/** The table's named checks make this impossible; a row that breaks them was not written by us. */
const instant = (at: Instant | null): string => {
  if (at === null) throw new Error('a row of pool_allocations lacks a time that its state requires')
  return (typeof at === 'string' ? new Date(at) : at).toISOString()
}

const common = (row: Row) => ({
  poolDomain: row.poolDomain,
  subdomain: row.subdomain,
  reservedAt: instant(row.reservedAt),
  createdBy: row.createdBy,
})

export const reservedOf = (row: Row): ReservedAllocation => ({
  ...common(row),
  state: 'reserved',
  expiresAt: instant(row.expiresAt),
})

export const activeOf = (row: Row): ActiveRow => ({
  ...common(row),
  state: 'active',
  sovereignFQDN: row.sovereignFQDN ?? '',
  loadBalancerIP: row.loadBalancerIP ?? '',
  committedAt: instant(row.committedAt),
})

const progressOf = (row: RowWithProgress): Progress | null =>
  row.version === null || row.appliedVersion === null
    ? null
    : { version: row.version, appliedVersion: row.appliedVersion, lastError: row.lastError }

/** An active row always has desired records; where they cannot be seen yet, they have only just been stated. */
const dnsOf = (row: RowWithProgress): DnsState => {
  const progress = progressOf(row)
  return progress ? dnsStateOf(progress) : { status: 'pending' }
}

export const allocationOf = (row: RowWithProgress): Allocation =>
  row.state === 'reserved' ? reservedOf(row) : { ...activeOf(row), dns: dnsOf(row) }

import { LEASE_TTL, type Lease } from '@pool/contract/lease'
import { jumpAfterLoss, type LeaseState, restartAt } from '../../lease/lease.ts'

/** The metadata of our own copies. Records of other systems do not have it. Times are milliseconds since the epoch. */
export interface CopyMark {
  /** The time of the last write of a held lease; 0 if it was released. */
  readonly renewedAt: number
  /** When the copy was written. Version 1.0 did not store it. */
  readonly copiedAt?: number
  /** The id of the Durable Object that wrote it. Version 1.0 did not store it. */
  readonly object?: string
  /** By how much the generation of the value is above that of the lease; see `writeCopy`. */
  readonly ahead?: number
}

export interface KvRecord {
  readonly key: string
  readonly value: string
  readonly metadata: unknown
}

/** What Workers KV has for a slot. */
export type FoundRecord =
  | { readonly kind: 'nothing' }
  /** The record of a system that keeps its leases in KV. */
  | { readonly kind: 'foreign'; readonly lease: LeaseState; readonly value: string }
  /** The copy of a Durable Object. */
  | { readonly kind: 'copy'; readonly lease: LeaseState; readonly value: string; readonly mark: CopyMark }
  | { readonly kind: 'invalid'; readonly key: string }

/** Leaves room below 2^53 for jumps and later writes: larger numbers are not exact in JavaScript clients. */
const MAX_IMPORTED_GENERATION = 2 ** 52

const optional = <Name extends string, Value>(name: Name, value: Value | undefined) =>
  (value === undefined ? {} : { [name]: value }) as { readonly [key in Name]?: Value }

export const parseMark = (metadata: unknown): CopyMark | undefined => {
  if (typeof metadata !== 'object' || metadata === null) return undefined
  const { renewedAt, copiedAt, object, ahead } = metadata as Readonly<Record<string, unknown>>
  if (typeof renewedAt !== 'number') return undefined
  return {
    renewedAt,
    ...optional('copiedAt', typeof copiedAt === 'number' ? copiedAt : undefined),
    ...optional('object', typeof object === 'string' ? object : undefined),
    ...optional('ahead', typeof ahead === 'number' ? ahead : undefined),
  }
}

export const isOwnCopy = ({ metadata }: Pick<KvRecord, 'metadata'>): boolean => parseMark(metadata) !== undefined

const parseTime = (value: unknown): number | undefined => {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isFinite(ms) ? ms : undefined
}

/**
 * A lease as another system stored it, also with times without milliseconds. Undefined: not a lease. The record does not
 * have the time of the last write: the earliest possible one is assumed.
 */
export const parseLeaseRecord = (value: string): LeaseState | undefined => {
  let record: unknown
  try {
    record = JSON.parse(value)
  } catch {
    return undefined
  }
  if (typeof record !== 'object' || record === null || !('generation' in record)) return undefined
  const { generation } = record
  if (typeof generation !== 'number' || !Number.isInteger(generation)) return undefined
  if (generation < 0 || generation > MAX_IMPORTED_GENERATION) return undefined
  const holder = 'holder' in record ? record.holder : ''
  if (holder === '') return { kind: 'released', acquiredAt: 0, writtenAt: 0, generation }
  const acquiredAt = parseTime('acquiredAt' in record ? record.acquiredAt : undefined)
  const expiresAt = parseTime('expiresAt' in record ? record.expiresAt : undefined)
  if (typeof holder !== 'string' || acquiredAt === undefined || expiresAt === undefined) return undefined
  const writtenAt = Math.max(acquiredAt, expiresAt - LEASE_TTL.max * 1_000)
  return { kind: 'held', holder, acquiredAt, writtenAt, expiresAt, generation }
}

/**
 * What Workers KV has for a slot. `decoded` is the record under the slot's current key; `encoded` are the records under its
 * legacy keys. The highest generation wins, because a generation must not go back. An invalid record is never skipped: its
 * generation may be in use.
 */
export const findRecord = (decoded: KvRecord | undefined, encoded: readonly KvRecord[]): FoundRecord => {
  const mark = decoded && parseMark(decoded.metadata)
  // A legacy key of this slot can be the current key of another slot; our own copy there belongs to that slot.
  const records = [...(decoded ? [decoded] : []), ...(mark ? [] : encoded.filter(record => !isOwnCopy(record)))]
  let newest: { readonly lease: LeaseState; readonly value: string } | undefined
  for (const { key, value } of records) {
    const lease = parseLeaseRecord(value)
    if (!lease) return { kind: 'invalid', key }
    if (!newest || lease.generation > newest.lease.generation) newest = { lease, value }
  }
  if (!newest) return { kind: 'nothing' }
  if (!mark) return { kind: 'foreign', ...newest }
  const { lease, value } = newest
  const writtenAt = lease.kind === 'held' ? mark.renewedAt : lease.writtenAt
  return { kind: 'copy', lease: { ...lease, writtenAt }, value, mark }
}

/**
 * The lease of an object that was lost, from its copy. The copy may lack the last writes: the generation jumps above any
 * that they may have had, and the holder gets its whole TTL again, as etcd does for leases after a change of leader.
 */
export const recover = ({ lease, mark }: FoundRecord & { readonly kind: 'copy' }, now: number): LeaseState => {
  const restarted = restartAt(lease, now)
  return { ...restarted, generation: lease.generation + jumpAfterLoss(now - (mark.copiedAt ?? mark.renewedAt)) }
}

/** Whether `record` was written by a system other than the object, and is not the one that the object has taken over. */
export const isForeign = (record: KvRecord, object: string, takenOver: string | undefined): boolean => {
  const mark = parseMark(record.metadata)
  if (mark && (mark.object === undefined || mark.object === object)) return false
  return record.value !== takenOver
}

/** The lease of which a record is a copy. */
export const toCopiedLease = (lease: Lease, mark: CopyMark | undefined): Lease => ({
  ...lease,
  generation: lease.generation - (mark?.ahead ?? 0),
})

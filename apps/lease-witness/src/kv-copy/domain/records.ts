import { LEASE_TTL, type Lease } from '@pool/contract/lease'
import { GENERATION_JUMP, jumpAfterLoss, type LeaseState, restartAt } from '../../lease/lease.ts'
import { copyKey, KEY_PREFIX, parseLegacyKey } from './keys.ts'
import type { TakenRecords } from './schedule.ts'

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
  /** By how much the expiry of the value is later than that of the lease; see `expiryExtensionMs`. */
  readonly extendedMs?: number
  /** The key is a legacy key of the slot. */
  readonly isLegacyKey?: boolean
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
  | { readonly kind: 'foreign'; readonly lease: LeaseState }
  /** The copy of a Durable Object. */
  | { readonly kind: 'copy'; readonly lease: LeaseState; readonly mark: CopyMark }
  | { readonly kind: 'invalid'; readonly key: string }

/** Leaves room below 2^53 for jumps and later writes: larger numbers are not exact in JavaScript clients. */
const MAX_IMPORTED_GENERATION = 2 ** 52

const optional = <Name extends string, Value>(name: Name, value: Value | undefined) =>
  (value === undefined ? {} : { [name]: value }) as { readonly [key in Name]?: Value }

export const parseMark = (metadata: unknown): CopyMark | undefined => {
  if (typeof metadata !== 'object' || metadata === null) return undefined
  const { renewedAt, copiedAt, object, ahead, extendedMs, isLegacyKey } = metadata as Readonly<Record<string, unknown>>
  if (typeof renewedAt !== 'number') return undefined
  return {
    renewedAt,
    ...optional('copiedAt', typeof copiedAt === 'number' ? copiedAt : undefined),
    ...optional('object', typeof object === 'string' ? object : undefined),
    ...optional('ahead', typeof ahead === 'number' ? ahead : undefined),
    ...optional('extendedMs', typeof extendedMs === 'number' ? extendedMs : undefined),
    ...optional('isLegacyKey', isLegacyKey === true ? true : undefined),
  }
}

/** The slot of a record. Without a mark, its key is taken for a legacy key. */
export const toSlot = ({ key, metadata }: Pick<KvRecord, 'key' | 'metadata'>): string | undefined => {
  const mark = parseMark(metadata)
  return mark && !mark.isLegacyKey ? key.slice(KEY_PREFIX.length) : parseLegacyKey(key)
}

/** Whether a record under a key of the slot is of that slot: a legacy key of one slot can be the current key of another. */
export const isOfSlot = (record: Pick<KvRecord, 'key' | 'metadata'>, slot: string): boolean =>
  record.key === copyKey(slot) ? !parseMark(record.metadata)?.isLegacyKey : toSlot(record) === slot

const parseTime = (value: unknown): number | undefined => {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isFinite(ms) ? ms : undefined
}

/**
 * A lease as another system stored it, also with times without milliseconds. Undefined: not a lease. The record does not
 * have the time of the last write: the earliest possible one is assumed. Only the `value` of our own copies counts: another
 * system can leave that of an earlier holder in its record.
 */
export const parseLeaseRecord = (text: string, { isCopy = false } = {}): LeaseState | undefined => {
  let record: unknown
  try {
    record = JSON.parse(text)
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
  const value = isCopy && 'value' in record && typeof record.value === 'string' ? record.value : undefined
  return { kind: 'held', holder, acquiredAt, writtenAt, expiresAt, generation, ...optional('value', value) }
}

/**
 * What Workers KV has for a slot, from the records under all its keys. The highest generation wins, because a generation
 * must not go back. An invalid record is never skipped: its generation may be in use.
 */
export const findRecord = (records: readonly KvRecord[]): FoundRecord => {
  let newest: { readonly lease: LeaseState; readonly mark: CopyMark | undefined } | undefined
  for (const { key, value, metadata } of records) {
    const mark = parseMark(metadata)
    const lease = parseLeaseRecord(value, { isCopy: mark !== undefined })
    if (!lease) return { kind: 'invalid', key }
    if (!newest || lease.generation > newest.lease.generation) newest = { lease, mark }
  }
  if (!newest) return { kind: 'nothing' }
  const { lease, mark } = newest
  if (!mark) return { kind: 'foreign', lease }
  if (lease.kind === 'released') return { kind: 'copy', lease, mark }
  const expiresAt = lease.expiresAt - (mark.extendedMs ?? 0)
  return { kind: 'copy', lease: { ...lease, writtenAt: mark.renewedAt, expiresAt }, mark }
}

/**
 * The highest generation from which a system that reads the records can continue. If the objects of copies are lost at `now`,
 * the highest that they may have granted.
 */
export const highestGeneration = (records: readonly KvRecord[], now?: number): number => {
  const generations = records.map(({ value, metadata }) => {
    const generation = parseLeaseRecord(value)?.generation ?? 0
    const mark = parseMark(metadata)
    return now === undefined || !mark ? generation : generation + jumpSinceCopy(mark, now)
  })
  return Math.max(0, ...generations)
}

const jumpSinceCopy = ({ copiedAt, renewedAt }: CopyMark, now: number): number =>
  jumpAfterLoss(now - (copiedAt ?? renewedAt))

/**
 * The lease of an object that was lost, from its copy. The copy may lack the last writes: the generation jumps above any
 * that they may have had, and the holder gets its whole TTL again, as etcd does for leases after a change of leader.
 */
export const recover = ({ lease, mark }: FoundRecord & { readonly kind: 'copy' }, now: number): LeaseState => {
  const restarted = restartAt(lease, now)
  return { ...restarted, generation: lease.generation + jumpSinceCopy(mark, now) }
}

/** Whether `record` was written by a system other than the object, and is not one that the object has taken over. */
export const isForeign = (record: KvRecord, object: string, takenRecords: TakenRecords = {}): boolean => {
  const mark = parseMark(record.metadata)
  if (mark && (mark.object === undefined || mark.object === object)) return false
  return !Object.values(takenRecords).includes(record.value)
}

/**
 * The writes that a record shows and the object with this state does not know: of another system, or its own, which it lost
 * when its storage was rolled back. `generation` is above them.
 */
export const findUnknownWrites = (
  record: KvRecord,
  object: string,
  { lease, takenRecords }: { readonly lease: LeaseState; readonly takenRecords?: TakenRecords },
  now: number,
) => {
  const theirs = parseLeaseRecord(record.value)
  const from = theirs?.kind === 'held' ? theirs.holder : ''
  const highest = Math.max(lease.generation, theirs?.generation ?? 0)
  if (isForeign(record, object, takenRecords)) {
    return { event: 'foreign-writer' as const, from, generation: highest + GENERATION_JUMP }
  }
  const mark = parseMark(record.metadata)
  const isLater = theirs && mark?.object === object && theirs.generation - (mark.ahead ?? 0) > lease.generation
  return isLater ? { event: 'jumped' as const, from, generation: highest + jumpSinceCopy(mark, now) } : undefined
}

/** The records that a slot has taken over: those `before`, and more. */
export const toTakenRecords = (
  slot: string,
  records: readonly KvRecord[],
  before: TakenRecords = {},
): TakenRecords => ({
  [copyKey(slot)]: '',
  ...before,
  ...Object.fromEntries(records.map(({ key, value }) => [key, value])),
})

/** The start of a record that another system wrote, for the log. */
export const toLoggedRecord = (text: string): string => {
  try {
    return JSON.stringify(JSON.parse(text, (key, value) => (key === 'value' ? undefined : value))).slice(0, 512)
  } catch {
    return text.slice(0, 512)
  }
}

/** The lease as it is in the value of its copy, whose mark may have `ahead` and `extendedMs`. */
export const toCopyValue = (lease: Lease, { ahead = 0, extendedMs = 0 }: Partial<CopyMark>): Lease => ({
  ...lease,
  expiresAt: lease.expiresAt && new Date(Date.parse(lease.expiresAt) + extendedMs).toISOString(),
  generation: lease.generation + ahead,
})

/** The lease of which a record is a copy. */
export const toCopiedLease = (lease: Lease, { ahead = 0, extendedMs = 0 }: Partial<CopyMark> = {}): Lease =>
  toCopyValue(lease, { ahead: -ahead, extendedMs: -extendedMs })

import type { LeaseState } from '../../lease/lease.ts'

/** The metadata of our own copies. Records of older deployments do not have it. */
export interface CopyMark {
  readonly renewedAt: number
}

export interface KvRecord {
  readonly key: string
  readonly value: string
  readonly metadata: unknown
}

export type LegacyImport =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'imported'; readonly lease: LeaseState }
  | { readonly kind: 'invalid'; readonly key: string }

/**
 * Added to the generation when a slot's object is lost and only our own copy is left. The copy may lack the last writes,
 * and a fencing token must never repeat. An object cannot make a million writes in the minute that its copy may lag.
 */
export const RECOVERY_GENERATION_GAP = 2 ** 20

/** Leaves room below 2^53 for the gap and for later writes: larger numbers are not exact in JavaScript clients. */
const MAX_IMPORTED_GENERATION = 2 ** 52

const parseMark = (metadata: unknown): CopyMark | undefined => {
  if (typeof metadata !== 'object' || metadata === null || !('renewedAt' in metadata)) return undefined
  return typeof metadata.renewedAt === 'number' ? { renewedAt: metadata.renewedAt } : undefined
}

export const isOwnCopy = ({ metadata }: Pick<KvRecord, 'metadata'>): boolean => parseMark(metadata) !== undefined

const parseTime = (value: unknown): number | undefined => {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isFinite(ms) ? ms : undefined
}

/** A lease as an older deployment stored it, also with times without milliseconds. Undefined: not a lease. */
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
  return { kind: 'held', holder, acquiredAt, writtenAt: acquiredAt, expiresAt, generation }
}

/**
 * Restores a lease from our own copy after the loss of its object. The holder may have renewed since the copy was
 * written, so it gets its full TTL again, as etcd does for leases after a change of leader.
 */
const recover = (lease: LeaseState, { renewedAt }: CopyMark, now: number): LeaseState => {
  const generation = lease.generation + RECOVERY_GENERATION_GAP
  if (lease.kind === 'released') return { ...lease, generation }
  const expiresAt = Math.max(lease.expiresAt, now + lease.expiresAt - renewedAt)
  return { ...lease, generation, writtenAt: renewedAt, expiresAt }
}

/**
 * The state that a slot without stored state takes from Workers KV. `decoded` is the record under the slot's current key;
 * `encoded` are the records under its legacy keys. The highest generation wins, because a generation must not go back.
 * An invalid record is never skipped: its generation may be in use.
 */
export const importLegacy = (
  decoded: KvRecord | undefined,
  encoded: readonly KvRecord[],
  now: number,
): LegacyImport => {
  const mark = decoded && parseMark(decoded.metadata)
  // A legacy key of this slot can be the current key of another slot; our own copy there belongs to that slot.
  const records = [...(decoded ? [decoded] : []), ...(mark ? [] : encoded.filter(record => !isOwnCopy(record)))]
  let newest: LeaseState | undefined
  for (const { key, value } of records) {
    const lease = parseLeaseRecord(value)
    if (!lease) return { kind: 'invalid', key }
    if (!newest || lease.generation > newest.generation) newest = lease
  }
  if (!newest) return { kind: 'nothing' }
  return { kind: 'imported', lease: mark ? recover(newest, mark, now) : newest }
}

import type { Current } from '../../lease/lease.ts'

/** What our own copies carry as metadata: by it they are told from what an older deployment wrote. */
export interface CopyMark {
  readonly renewedAt: number
}

export interface KvRecord {
  readonly key: string
  readonly value: string
  readonly metadata: unknown
}

export type Adoption =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'adopted'; readonly lease: Current }
  | { readonly kind: 'unreadable'; readonly key: string }

/**
 * How far the generation leaps when a slot's object is gone and our own copy is all that is left. The copy may lack
 * the last renewals, and a fencing token must never repeat: a million writes are more than an object can make while its
 * copy is a minute behind.
 */
export const RECOVERY_LEAP = 2 ** 20

/** Beyond it, what is added to a generation could not be told apart in clients' numbers. */
const GREATEST_ADOPTED = 2 ** 52

const markOf = (metadata: unknown): CopyMark | undefined => {
  if (typeof metadata !== 'object' || metadata === null || !('renewedAt' in metadata)) return undefined
  return typeof metadata.renewedAt === 'number' ? { renewedAt: metadata.renewedAt } : undefined
}

export const isOwnCopy = ({ metadata }: Pick<KvRecord, 'metadata'>): boolean => markOf(metadata) !== undefined

const timeOf = (value: unknown): number | undefined => {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
  return Number.isFinite(ms) ? ms : undefined
}

/** A lease as an older deployment wrote it, down to times without milliseconds; undefined: it is none. */
export const parseRecord = (value: string): Current | undefined => {
  let record: unknown
  try {
    record = JSON.parse(value)
  } catch {
    return undefined
  }
  if (typeof record !== 'object' || record === null || !('generation' in record)) return undefined
  const { generation } = record
  if (typeof generation !== 'number' || !Number.isInteger(generation)) return undefined
  if (generation < 0 || generation > GREATEST_ADOPTED) return undefined
  const holder = 'holder' in record ? record.holder : ''
  if (holder === '') return { kind: 'released', generation }
  const acquiredAt = timeOf('acquiredAt' in record ? record.acquiredAt : undefined)
  const expiresAt = timeOf('expiresAt' in record ? record.expiresAt : undefined)
  if (typeof holder !== 'string' || acquiredAt === undefined || expiresAt === undefined) return undefined
  return { kind: 'held', holder, acquiredAt, renewedAt: acquiredAt, expiresAt, generation }
}

/**
 * Our own copy, read because the object that wrote it is gone. The holder may have renewed since, so it gets the time of
 * a whole lease again before anybody else may acquire it, as leases do after a change of etcd's leader.
 */
const recovered = (lease: Current, { renewedAt }: CopyMark, now: number): Current => {
  const generation = lease.generation + RECOVERY_LEAP
  if (lease.kind === 'released') return { ...lease, generation }
  const expiresAt = Math.max(lease.expiresAt, now + lease.expiresAt - renewedAt)
  return { ...lease, generation, renewedAt, expiresAt }
}

/**
 * What a slot without stored state takes over from Workers KV. `decoded` is the record under the slot's own key, if any;
 * `undecoded` are those under older spellings of it. Among several the highest generation counts, for a generation must
 * not go back. A record that is there and cannot be read is not passed over: its generation may be in use.
 */
export const adopt = (decoded: KvRecord | undefined, undecoded: readonly KvRecord[], now: number): Adoption => {
  const mark = decoded && markOf(decoded.metadata)
  // An older spelling can be another slot's own key; what we wrote there is that slot's.
  const records = [...(decoded ? [decoded] : []), ...(mark ? [] : undecoded.filter(record => !isOwnCopy(record)))]
  let best: Current | undefined
  for (const { key, value } of records) {
    const lease = parseRecord(value)
    if (!lease) return { kind: 'unreadable', key }
    if (!best || lease.generation > best.generation) best = lease
  }
  if (!best) return { kind: 'nothing' }
  return { kind: 'adopted', lease: mark ? recovered(best, mark, now) : best }
}

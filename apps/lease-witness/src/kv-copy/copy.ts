import type { Lease, LeaseList, LeaseListQuery } from '@pool/contract/lease'
import { type LeaseState, toWireLease } from '../lease/lease.ts'
import type { LeaseDirectory, LeaseListOutcome } from '../lease-service.ts'
import { copyKey, KEY_PREFIX, parseLegacyKey } from './domain/keys.ts'
import {
  type CopyMark,
  isOfSlot,
  type KvRecord,
  parseLeaseRecord,
  parseMark,
  toCopiedLease,
  toCopyValue,
  toSlot,
} from './domain/records.ts'
import { expiryExtensionMs } from './domain/schedule.ts'

/** Limits of Workers KV: keys per bulk read, bytes of metadata per key. */
const MAX_BULK_KEYS = 100
const MAX_METADATA_BYTES = 1_024

type GetResult = KVNamespaceGetWithMetadataResult<string, unknown>

/** The metadata includes the lease if it fits, so that a list need not read each value. */
interface CopyMetadata extends CopyMark {
  readonly lease?: Lease
}
const utf8 = new TextEncoder()

/** The records that exist. For a missing key, some runtimes return null and others a result whose value is null. */
const readAll = async (kv: KVNamespace, keys: readonly string[]): Promise<KvRecord[]> => {
  const batches = Array.from({ length: Math.ceil(keys.length / MAX_BULK_KEYS) }, (_, i) =>
    keys.slice(i * MAX_BULK_KEYS, (i + 1) * MAX_BULK_KEYS),
  )
  const results = await Promise.all(batches.map(batch => kv.getWithMetadata(batch, 'text')))
  return results.flatMap(batch =>
    [...batch].flatMap(([key, record]: [string, GetResult | null]) =>
      record === null || record.value === null ? [] : [{ key, value: record.value, metadata: record.metadata }],
    ),
  )
}

/** The records of a slot under some of its keys, and the keys that are not in use by another slot. */
export const readRecords = async (
  kv: KVNamespace,
  slot: string,
  keys: readonly string[],
): Promise<{ records: KvRecord[]; usableKeys: string[] }> => {
  const found = await readAll(kv, keys)
  const others = new Set(found.filter(record => !isOfSlot(record, slot)).map(({ key }) => key))
  return {
    records: found.filter(({ key }) => !others.has(key)),
    usableKeys: keys.filter(key => key === copyKey(slot) || !others.has(key)),
  }
}

export interface CopyOptions {
  readonly slot: string
  /** The id of the Durable Object. */
  readonly object: string
  readonly keys: readonly string[]
  /** Added to the generation of the value, for a namespace to which another system may still write. */
  readonly ahead: number
  /** The longest time until the next copy of a renewal. 0: the expiry of the value is exact. */
  readonly lagMs: number
  readonly now: number
}

/**
 * Writes the copy of a lease. Readers elsewhere may see it only after a minute or more. The metadata has the lease as it is.
 * A system that keeps its leases in KV reads the value and continues from its generation: with `ahead`, it does not grant a
 * generation that this witness grants before the next copy.
 */
export const writeCopy = async (
  kv: KVNamespace,
  state: LeaseState,
  { slot, object, keys, ahead, lagMs, now }: CopyOptions,
): Promise<void> => {
  const lease = toWireLease(state)
  const renewedAt = state.kind === 'held' ? state.writtenAt : 0
  const extendedMs = expiryExtensionMs(state, lagMs, now)
  const value = JSON.stringify(toCopyValue(lease, { ahead, extendedMs }))
  const puts = keys.map(key => {
    const isLegacyKey = key !== copyKey(slot)
    const mark: CopyMark = { renewedAt, copiedAt: now, object, ahead, extendedMs, isLegacyKey }
    const full: CopyMetadata = { ...mark, lease }
    const fits = utf8.encode(JSON.stringify(full)).length <= MAX_METADATA_BYTES
    return kv.put(key, value, { metadata: fits ? full : mark })
  })
  await Promise.all(puts)
}

const parseLeaseMetadata = (metadata: unknown): Lease | undefined => {
  if (typeof metadata !== 'object' || metadata === null || !('lease' in metadata)) return undefined
  const state = parseLeaseRecord(JSON.stringify(metadata.lease), { isCopy: true })
  return state && toWireLease(state)
}

/** A page of the copies. Reads legacy records one by one, and leaves out values that are not leases. */
const listCopies = async (kv: KVNamespace, { prefix, limit, cursor }: LeaseListQuery): Promise<LeaseListOutcome> => {
  const page = await kv.list({ prefix: `${KEY_PREFIX}${prefix}`, limit, ...(cursor ? { cursor } : {}) })
  // A copy under a legacy key is listed under the key of its slot.
  const keys = page.keys.filter(({ metadata }) => !parseMark(metadata)?.isLegacyKey)
  const unread = keys.filter(({ metadata }) => !parseLeaseMetadata(metadata)).map(({ name }) => name)
  // A legacy record is listed under its decoded slot, unless that slot has a record under its current key.
  const current = unread.map(key => copyKey(parseLegacyKey(key) ?? '')).filter(key => !unread.includes(key))
  const records = unread.length === 0 ? [] : await readAll(kv, [...unread, ...current])
  const byKey = new Map(records.map(record => [record.key, record]))

  const bySlot = new Map<string, LeaseList['leases'][number]>()
  for (const { name, metadata } of keys) {
    const record = byKey.get(name)
    const mark = parseMark(metadata)
    const slot = toSlot({ key: name, metadata })
    const parsed = record && parseLeaseRecord(record.value, { isCopy: mark !== undefined })
    const lease = parseLeaseMetadata(metadata) ?? (parsed && toCopiedLease(toWireLease(parsed), mark))
    if (!slot || !lease || (!mark && copyKey(slot) !== name && byKey.has(copyKey(slot)))) continue
    // Among several legacy records of a slot the highest generation wins, as in the import.
    if (lease.generation >= (bySlot.get(slot)?.generation ?? 0)) bySlot.set(slot, { slot, ...lease })
  }
  const leases = [...bySlot.values()]
  return { kind: 'listed', leases, nextCursor: page.list_complete ? undefined : page.cursor }
}

/** Limited by the number of objects that one request of a worker may call. */
const SLOTS_PER_PAGE = 100

/** A page of the slots that have a record in Workers KV. */
export const listSlots = async (
  kv: KVNamespace,
  cursor: string | undefined,
): Promise<{ readonly slots: string[]; readonly nextCursor: string | undefined }> => {
  const page = await kv.list({ prefix: KEY_PREFIX, limit: SLOTS_PER_PAGE, ...(cursor ? { cursor } : {}) })
  const slots = page.keys.map(({ name, metadata }) => toSlot({ key: name, metadata }))
  return {
    slots: [...new Set(slots)].filter(slot => slot !== undefined),
    nextCursor: page.list_complete ? undefined : page.cursor,
  }
}

/** The lease directory in a KV namespace. */
export const createLeaseDirectory = ({ OPENOVA_LEASES }: { readonly OPENOVA_LEASES: KVNamespace }): LeaseDirectory => ({
  list: query =>
    listCopies(OPENOVA_LEASES, query).catch(error => ({
      kind: 'copy-unavailable',
      reason: String(error),
      detail: 'Workers KV did not respond. Leases are not affected: read a single lease instead.',
    })),
})

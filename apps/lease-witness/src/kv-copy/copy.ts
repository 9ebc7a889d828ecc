import type { Lease, LeaseList, LeaseListQuery } from '@pool/contract/lease'
import { type Current, shown } from '../lease/lease.ts'
import { copyKey, KEY_PREFIX, olderKeys, type SlotAddress, slotOfOlderKey } from '../lease/slot-name.ts'
import type { Copies, ListOutcome } from '../lease-service.ts'
import { type CopyMark, isOwnCopy, type KvRecord, parseRecord } from './domain/import-legacy.ts'

/** Keys that one bulk read of Workers KV takes. */
const BULK = 100

type Found = KVNamespaceGetWithMetadataResult<string, unknown>

/** What a copy carries beside its value, so that a list needs no read of each. Too large, the list reads the value. */
interface CopyMetadata extends CopyMark {
  readonly lease?: Lease
}
const METADATA_MAX_BYTES = 1_024
const utf8 = new TextEncoder()

/** The records that are there. Of a missing key, runtimes give null in place of the result or of its value. */
const readAll = async (kv: KVNamespace, keys: readonly string[]): Promise<KvRecord[]> => {
  const batches = Array.from({ length: Math.ceil(keys.length / BULK) }, (_, i) => keys.slice(i * BULK, (i + 1) * BULK))
  const found = await Promise.all(batches.map(batch => kv.getWithMetadata(batch, 'text')))
  return found.flatMap(batch =>
    [...batch].flatMap(([key, record]: [string, Found | null]) =>
      record === null || record.value === null ? [] : [{ key, value: record.value, metadata: record.metadata }],
    ),
  )
}

/** What Workers KV holds for a slot that has no stored state. */
export const readRecords = async (
  kv: KVNamespace,
  at: SlotAddress,
): Promise<{ decoded: KvRecord | undefined; undecoded: KvRecord[] }> => {
  const own = copyKey(at.slot)
  const records = await readAll(kv, [own, ...olderKeys(at)])
  return { decoded: records.find(({ key }) => key === own), undecoded: records.filter(({ key }) => key !== own) }
}

/** Writes the copy. Resolves when it has landed; when others see it is up to Workers KV, a minute or more. */
export const writeCopy = (kv: KVNamespace, slot: string, current: Current): Promise<void> => {
  const lease = shown(current)
  const mark: CopyMark = { renewedAt: current.kind === 'held' ? current.renewedAt : 0 }
  const full: CopyMetadata = { ...mark, lease }
  const fits = utf8.encode(JSON.stringify(full)).length <= METADATA_MAX_BYTES
  return kv.put(copyKey(slot), JSON.stringify(lease), { metadata: fits ? full : mark })
}

const leaseOfMetadata = (metadata: unknown): Lease | undefined => {
  if (typeof metadata !== 'object' || metadata === null || !('lease' in metadata)) return undefined
  const current = parseRecord(JSON.stringify(metadata.lease))
  return current && shown(current)
}

/** A page of the copies. Records of an older deployment are read one by one; what is no lease is left out. */
const listCopies = async (kv: KVNamespace, { prefix, limit, cursor }: LeaseListQuery): Promise<ListOutcome> => {
  const page = await kv.list({ prefix: `${KEY_PREFIX}${prefix}`, limit, ...(cursor ? { cursor } : {}) })
  const unread = page.keys.filter(({ metadata }) => !leaseOfMetadata(metadata)).map(({ name }) => name)
  // An older record shows under the slot that it meant, unless that slot has a record of its own.
  const meant = unread.map(key => copyKey(slotOfOlderKey(key) ?? '')).filter(key => !unread.includes(key))
  const records = unread.length === 0 ? [] : await readAll(kv, [...unread, ...meant])
  const byKey = new Map(records.map(record => [record.key, record]))

  const bySlot = new Map<string, LeaseList['leases'][number]>()
  for (const { name, metadata } of page.keys) {
    const record = byKey.get(name)
    const isOwn = isOwnCopy({ metadata })
    const slot = isOwn ? name.slice(KEY_PREFIX.length) : slotOfOlderKey(name)
    const parsed = record && parseRecord(record.value)
    const lease = leaseOfMetadata(metadata) ?? (parsed && shown(parsed))
    if (!slot || !lease || (!isOwn && copyKey(slot) !== name && byKey.has(copyKey(slot)))) continue
    // Of several older spellings the highest generation counts, as it does when the slot is adopted.
    if (lease.generation >= (bySlot.get(slot)?.generation ?? 0)) bySlot.set(slot, { slot, ...lease })
  }
  const leases = [...bySlot.values()]
  return { kind: 'listed', leases, nextCursor: page.list_complete ? undefined : page.cursor }
}

/** The copies in a namespace. */
export const copiesOf = (kv: KVNamespace, onFault: (error: unknown) => void): Copies => ({
  list: query =>
    listCopies(kv, query).catch(error => {
      onFault(error)
      return { kind: 'copy-unavailable' }
    }),
})

import type { JsonObject } from '../../../lib/json.ts'
import { type RecordSet, recordKey } from '../../domain/rrset.ts'
import { toNumber, toText } from './json.ts'
import { relative, toPresentation } from './rdata.ts'

/** A single record at Cloudflare, which knows no RRsets. */
export interface CloudflareRecord {
  readonly id: string
  readonly name: string
  readonly type: string
  /** Seconds; 1: automatic, which no other record can have, and every proxied one has. */
  readonly ttl: number
  readonly isProxied: boolean
  /** Presentation format. */
  readonly value: string
}

/** Undefined: not a record, and then the whole answer is none. */
export const parseRecord = (record: JsonObject): CloudflareRecord | undefined => {
  const [id, name, type, ttl] = [toText(record.id), toText(record.name), toText(record.type), toNumber(record.ttl)]
  if (!id || !name || !type || ttl === undefined) return undefined
  const isProxied = record.proxied === true
  return { id, name: relative(name.toLowerCase()), type, ttl, isProxied, value: toPresentation(record) }
}

/**
 * Records as RRsets. A TTL left to Cloudflare (300 s to resolvers) shows as 1, its number in the API: a record set of
 * this service never has it, so one that somebody made automatic or proxied is seen as changed and put right. Of
 * differing TTLs the least counts (RFC 2181 section 5.2 allows none).
 */
export const toRecordSets = (records: readonly CloudflareRecord[]): RecordSet[] =>
  Array.from(Map.groupBy(records, recordKey).values(), all => ({
    name: all[0]?.name ?? '',
    type: all[0]?.type ?? '',
    ttl: Math.min(...all.map(record => record.ttl)),
    values: Array.from(new Set(all.map(record => record.value))).sort(),
  }))

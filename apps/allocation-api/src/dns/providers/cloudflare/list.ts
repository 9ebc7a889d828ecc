import type { Unavailable } from '../../domain/result.ts'
import type { CloudflareApi } from './api.ts'
import { type StaleZoneError, type Success, unavailable } from './errors.ts'
import { type CloudflareRecord, parseRecord, toList, toNumber } from './record.ts'
import type { ZoneRef } from './zone-lookup.ts'

export interface ListedRecords {
  readonly kind: 'listed'
  readonly records: readonly CloudflareRecord[]
  /** Of the whole zone. */
  readonly isFullZone: boolean
}

/** For this many names, one filtered call for each is cheaper than listing the whole zone, whatever its size. */
const MAX_FILTERED_NAMES = 4
/** Calls in flight: far below the limit of 200 per second for one address. */
const MAX_PARALLEL_CALLS = 4
/** Attempts to list a zone with consistent pages. */
const MAX_LIST_ATTEMPTS = 3

/** The fewest suffixes that cover all names: `acme.example` covers `*.acme.example`. */
export const toSuffixes = (names: readonly string[]): string[] => {
  const bare = Array.from(new Set(names.map(name => name.replace(/^\*\./, ''))))
  const known = new Set(bare)
  const hasAbove = (name: string): boolean => {
    const labels = name.split('.')
    return labels.some((_, i) => i > 0 && known.has(labels.slice(i).join('.')))
  }
  return bare.filter(name => !hasAbove(name))
}

/** The records of all pages of one list; undefined: they are inconsistent, because the zone changed between the calls. */
export const mergePages = (pages: readonly Success[], total: number): CloudflareRecord[] | undefined => {
  const entries = pages.flatMap(({ result }) => toList(result).map(parseRecord))
  const records = new Map(entries.flatMap(record => (record ? [[record.id, record] as const] : [])))
  const isFullZone = !entries.includes(undefined) && records.size === total
  return isFullZone && pages.every(({ info }) => info.total_count === total) ? Array.from(records.values()) : undefined
}

const mapInGroups = async <Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> => {
  const results: Result[] = []
  for (let i = 0; i < items.length; i += MAX_PARALLEL_CALLS)
    results.push(...(await Promise.all(items.slice(i, i + MAX_PARALLEL_CALLS).map(work))))
  return results
}

/** Every record whose name ends in `suffix`; without a suffix, every record of the zone. */
const list = async (api: CloudflareApi, place: ZoneRef, suffix: string | undefined, signal: AbortSignal) => {
  const query: Record<string, string> = suffix === undefined ? {} : { 'name.endswith': suffix }
  const page = (number: number) => api.listPage(place.id, query, number, signal)
  for (let attempt = 0; attempt < MAX_LIST_ATTEMPTS; attempt += 1) {
    const first = await page(1)
    if (first.kind !== 'done') return first
    const total = toNumber(first.info.total_count)
    const size = toList(first.result).length
    if (total === undefined || (size === 0 && total > 0)) continue
    // A page may be smaller than requested.
    const count = size === 0 ? 1 : Math.ceil(total / size)
    const numbers = Array.from({ length: count - 1 }, (_, i) => i + 2)
    const others = await mapInGroups(numbers, page)
    const failed = others.find(other => other.kind !== 'done')
    if (failed) return failed
    const records = mergePages([first, ...others.filter(other => other.kind === 'done')], total)
    if (!records) continue
    if (suffix === undefined) place.pages = count
    return { kind: 'listed', records, isFullZone: suffix === undefined } as const
  }
  return unavailable('The record list from Cloudflare is inconsistent; another client may be changing the zone.')
}

/** The records at or below `names`. The result may contain other records. */
export const listRecords = async (
  api: CloudflareApi,
  place: ZoneRef,
  names: readonly string[] | 'all',
  signal: AbortSignal,
): Promise<ListedRecords | StaleZoneError | Unavailable> => {
  const suffixes = names === 'all' ? [] : toSuffixes(names)
  if (names === 'all' || suffixes.length > Math.max(MAX_FILTERED_NAMES, place.pages))
    return list(api, place, undefined, signal)
  const lists = await mapInGroups(suffixes, suffix => list(api, place, suffix, signal))
  const failed = lists.find(result => result.kind !== 'listed')
  if (failed) return failed
  const records = lists.flatMap(result => (result.kind === 'listed' ? result.records : []))
  return {
    kind: 'listed',
    records: Array.from(new Map(records.map(record => [record.id, record])).values()),
    isFullZone: false,
  }
}

import { domainToUnicode } from 'node:url'
import { isJsonObject, type JsonObject } from '../../../lib/text.ts'
import type { Unavailable, WantedRecords, ZoneSearch } from '../../domain/result.ts'
import { createNameFilter, isAtOrBelow } from '../../domain/rrset.ts'
import type { ZoneOf } from '../../provider.ts'
import { MAX_FULL_READ } from '../../read-zone.ts'
import { type CloudflareApi, type StaleZoneError, type Success, unavailable } from './api.ts'
import { type CloudflareRecord, parseRecord, toAscii, toList, toNumber, toText } from './record.ts'

/** A zone in the API. */
export interface ZoneRef {
  readonly id: string
  readonly name: string
  /** Maximum operations in a batch on the zone's plan. */
  readonly batchLimit: number
  /** The pool, if it is a part of the zone: only records whose names end in it are listed. */
  readonly part?: string
  /** Calls that the last list of the whole zone, or the part, needed. */
  pages: number
}

/** Batches of 200 operations on the Free plan, of 3500 on the others. */
const toBatchLimit = (zone: JsonObject): number => {
  const plan = isJsonObject(zone.plan) ? toText(zone.plan.legacy_id) : ''
  return ['pro', 'business', 'enterprise'].includes(plan) ? 3_500 : 200
}

/** Selects the zone `name` from the API's `zones`, or explains why it cannot be written. */
export const selectZone = (name: string, zones: unknown): ZoneRef | Unavailable => {
  const found = toList(zones).filter(entry => toAscii(toText(entry.name)) === name)
  // A domain can be in several accounts; it is active in one.
  const zone = found.find(({ status }) => status === 'active') ?? found[0]
  const id = toText(zone?.id)
  const scope = 'zone'
  if (!zone || !id)
    return { ...unavailable(`Cloudflare has no zone ${name}, or the API token may not read it (Zone Read).`), scope }
  if (zone.type === 'secondary')
    return { ...unavailable(`The zone ${name} at Cloudflare is secondary: its records come from elsewhere.`), scope }
  const status = toText(zone.status)
  if (status !== '' && status !== 'active') {
    const reason = `Cloudflare does not serve the zone ${name}: its status is "${status}". Check its name servers at the registrar.`
    return { ...unavailable(reason), scope }
  }
  return { id, name, batchLimit: toBatchLimit(zone), pages: 1 }
}

/** The status of a zone can change. */
const MAX_REF_AGE_MS = 600_000

const lookUpZone = async (api: CloudflareApi, name: string, signal: AbortSignal) => {
  const answer = await api.findZones(name, signal)
  const unicode = domainToUnicode(name)
  const isEmpty = answer.kind === 'done' && toList(answer.result).length === 0
  const last = isEmpty && unicode !== name ? await api.findZones(unicode, signal) : answer
  return last.kind === 'doubt' ? last.unavailable : last
}

/** Whether Cloudflare shows a zone of this name to the token, and serves it. */
export const hasZone = async (api: CloudflareApi, name: string, signal: AbortSignal) => {
  const answer = await lookUpZone(api, name, signal)
  if (answer.kind !== 'done') return answer
  const isServed = (status: string) => status === '' || status === 'active'
  return toList(answer.result).some(zone => toAscii(toText(zone.name)) === name && isServed(toText(zone.status)))
}

/** Pages of a list of zones: a bound in case that the list has no end. */
const MAX_ZONE_PAGES = 100

/** The zones below a name that Cloudflare serves; none if it rejects the filter. */
export const listZonesBelow = async (api: CloudflareApi, name: string, signal: AbortSignal): Promise<ZoneSearch> => {
  const zones: string[] = []
  for (const suffix of new Set([name, domainToUnicode(name)])) {
    for (let page = 1, pages = 1; page <= Math.min(pages, MAX_ZONE_PAGES); page += 1) {
      const answer = await api.findZonesBelow(suffix, page, signal)
      if (answer.kind === 'declined') break
      if (answer.kind !== 'done') return answer.kind === 'doubt' ? answer.unavailable : answer
      const active = toList(answer.result).filter(({ status }) => status === 'active')
      zones.push(...active.map(entry => toAscii(toText(entry.name))))
      pages = toNumber(answer.info.total_pages) ?? 1
    }
  }
  return { kind: 'found', zones, isAll: true }
}

/** Runs work on the zone of a pool with its cached id. If Cloudflare rejects the id, looks the zone up again. */
export const createWithZone = (api: CloudflareApi, zoneOf: ZoneOf) => {
  /** `foundAt`: of `performance.now`. */
  const zoneRefs = new Map<string, { readonly ref: ZoneRef; readonly foundAt: number }>()

  return async <Result extends { readonly kind: string }>(
    pool: string,
    signal: AbortSignal,
    work: (zoneRef: ZoneRef) => Promise<Result | StaleZoneError>,
  ): Promise<Result | Unavailable> => {
    const isStale = (result: Result | StaleZoneError): result is StaleZoneError => result.kind === 'doubt'
    const zone = zoneOf(pool)
    const cached = zoneRefs.get(pool)
    if (cached?.ref.name === zone && performance.now() - cached.foundAt < MAX_REF_AGE_MS) {
      const result = await work(cached.ref)
      if (!isStale(result)) return result
      zoneRefs.delete(pool)
    }
    const answer = await lookUpZone(api, zone, signal)
    if (answer.kind !== 'done') return answer
    const found = selectZone(zone, answer.result)
    if ('kind' in found) return found
    // In which form the filter has internationalized names is not documented.
    const zoneRef = pool === zone || domainToUnicode(pool) !== pool ? found : { ...found, part: pool }
    const result = await work(zoneRef)
    if (!isStale(result)) {
      zoneRefs.set(pool, { ref: zoneRef, foundAt: performance.now() })
      return result
    }
    // The token found the zone, so a missing permission concerns only this zone.
    return { ...result.unavailable, reason: `Zone ${zone}: ${result.unavailable.reason}`, scope: 'zone' }
  }
}

export interface ListedRecords {
  readonly kind: 'listed'
  readonly records: readonly CloudflareRecord[]
  /** Of the whole zone. */
  readonly isFullZone: boolean
}

export type RecordPart =
  | { readonly kind: 'records'; readonly records: readonly CloudflareRecord[] }
  /** The zone changed between the calls: the parts so far do not count. */
  | { readonly kind: 'restart' }

/** For this many names, one filtered call for each is cheaper than listing the whole zone, whatever its size. */
const MAX_FILTERED_NAMES = 4
/** Of a zone whose list is inconsistent because another client writes to it. */
const MAX_NAMES_OF_BUSY_ZONE = 200
/** Calls in flight: far below the limit of 200 per second for one address. */
const MAX_PARALLEL_CALLS = 4
/** Attempts to list a zone with consistent pages. */
const MAX_LIST_ATTEMPTS = 3

type Filter = Readonly<Record<string, string>>
const toFilter = (suffix: string): Filter => ({ 'name.endswith': suffix })

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

/** Every record that the filter selects; without one, every record of the zone, or its part. A failure is the last part. */
export const listParts = async function* (
  api: CloudflareApi,
  place: ZoneRef,
  filter: Filter | undefined,
  signal: AbortSignal,
): AsyncGenerator<RecordPart | StaleZoneError | Unavailable, void> {
  const query = filter ?? (place.part === undefined ? {} : toFilter(place.part))
  for (let attempt = 0; attempt < MAX_LIST_ATTEMPTS; attempt += 1) {
    const first = await api.listPage(place.id, query, 1, signal)
    if (first.kind !== 'done') return yield first
    const check = new PageCheck(first)
    const firstRecords = check.add(first)
    if (firstRecords) yield { kind: 'records', records: firstRecords }
    for (let number = 2; number <= check.pageCount && check.isConsistent; number += 1) {
      const page = await api.listPage(place.id, query, number, signal)
      if (page.kind !== 'done') return yield page
      const records = check.add(page)
      if (records) yield { kind: 'records', records }
    }
    if (check.isComplete()) {
      if (filter === undefined) place.pages = check.pageCount
      return
    }
    yield { kind: 'restart' }
  }
  const reason = 'The record list from Cloudflare is inconsistent; another client may be changing the zone.'
  yield { ...unavailable(reason), scope: 'zone', isTransient: true }
}

/** Whether the pages of one list belong to one state of the zone. */
export class PageCheck {
  readonly pageCount: number
  isConsistent = true
  readonly #total: number | undefined
  #count = 0
  /** A record that is inserted between two calls moves others from the end of a page to the start of the next one. */
  #previousIds: ReadonlySet<string> = new Set()

  constructor({ result, info }: Success) {
    this.#total = toNumber(info.total_count)
    // A page may be smaller than requested.
    const size = toList(result).length
    this.pageCount = size === 0 ? 1 : Math.ceil((this.#total ?? 0) / size)
  }

  /** The records of the page; undefined: the pages are inconsistent, because the zone changed between the calls. */
  add({ result, info }: Success): CloudflareRecord[] | undefined {
    const records = toList(result)
      .map(parseRecord)
      .filter(record => record !== undefined)
    const ids = new Set(records.map(({ id }) => id))
    const isNew = ids.size === records.length && !records.some(({ id }) => this.#previousIds.has(id))
    this.#previousIds = ids
    this.#count += records.length
    this.isConsistent &&= isNew && records.length === toList(result).length && info.total_count === this.#total
    return this.isConsistent ? records : undefined
  }

  isComplete(): boolean {
    return this.isConsistent && this.#count === this.#total
  }
}

/** The wanted records. The result may contain others, and is the whole zone if that is small or one page. */
export const listRecords = async (
  api: CloudflareApi,
  place: ZoneRef,
  { names, branches }: WantedRecords,
  signal: AbortSignal,
  onProgress: () => void = () => {},
): Promise<ListedRecords | StaleZoneError | Unavailable> => {
  const isAbove = (name: string) => isAtOrBelow(place.part ?? place.name, name)
  // By suffix, these would be the whole pool. The apex has nothing that hides a pool: Cloudflare has no DNAME.
  const filters = names
    .filter(name => isAbove(name) && name !== place.name)
    .map((name): Filter => ({ 'name.exact': name }))
  const suffixes = toSuffixes([...names.filter(name => !isAbove(name)), ...branches])
  // In which form the filter has internationalized names is not documented.
  const canFilter = suffixes.every(name => name !== place.name && domainToUnicode(name) === name)
  const isFiltered = canFilter && suffixes.length <= Math.max(MAX_FILTERED_NAMES, place.pages)
  const isWanted = createNameFilter({ names: [], branches: suffixes })
  let isFull = !isFiltered
  const listOne = async (filter?: Filter) => {
    const found = new Map<string, CloudflareRecord>()
    for await (const part of listParts(api, place, filter, signal)) {
      if (part.kind !== 'restart' && part.kind !== 'records') return part
      onProgress()
      if (part.kind === 'restart') found.clear()
      else
        for (const record of part.records)
          if (isFull || filter !== undefined || isWanted(record.name)) found.set(record.id, record)
      if (isFull && found.size > MAX_FULL_READ) {
        isFull = false
        for (const { id, name } of found.values()) if (!isWanted(name)) found.delete(id)
      }
    }
    return found
  }
  const whole = isFiltered ? undefined : await listOne()
  if (whole && !(whole instanceof Map)) {
    const isBusy = whole.kind === 'unavailable' && whole.isTransient
    if (!isBusy || !canFilter || suffixes.length > MAX_NAMES_OF_BUSY_ZONE) return whole
    // Another client changes the zone all the time: the list of one name is a single call, which has one state.
    isFull = false
  }
  const all = whole instanceof Map ? whole : new Map<string, CloudflareRecord>()
  if (!(whole instanceof Map)) filters.push(...suffixes.map(toFilter))
  for (let i = 0; i < filters.length; i += MAX_PARALLEL_CALLS) {
    for (const found of await Promise.all(filters.slice(i, i + MAX_PARALLEL_CALLS).map(listOne))) {
      if (!(found instanceof Map)) return found
      for (const [id, record] of found) all.set(id, record)
    }
  }
  return { kind: 'listed', records: Array.from(all.values()), isFullZone: isFull }
}

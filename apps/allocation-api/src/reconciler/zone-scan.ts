import type { Hiding, Unavailable, ZonePart } from '../dns/domain/result.ts'
import type { RecordSet } from '../dns/domain/rrset.ts'
import type { RecordTemplate } from '../dns/domain/target.ts'
import type { CheckedName } from './domain/name.ts'
import { type Orphan, OrphanCandidate } from './domain/orphan.ts'
import { toSubdomain } from './domain/plan.ts'
import {
  addKnown,
  addUnknown,
  BoundedMap,
  type ScanEntry,
  type ScannedName,
  toScannedName,
  weighEntry,
} from './domain/scan-entry.ts'
import { parseMarkers, toMarkerName, type ZoneMarker } from './domain/zone-marker.ts'

export interface ScanPage {
  readonly kind: 'page'
  /** In their order, which continues on the next page. Not those that changed during the scan. */
  readonly names: readonly ScannedName[]
  /** Names without a row whose records match the template, in their order. */
  readonly orphans: readonly Orphan[]
  /** Names without a row that have an NS record, in their order. */
  readonly delegated: readonly string[]
  /** The markers of the zone. They are on the first page, which is always there. */
  readonly markers: readonly ZoneMarker[]
  readonly hiding: Hiding
  /** Milliseconds since the read of the zone that the page is about began. */
  readonly readMsAgo: number
}

/** A zone to scan, and the rows of its names. */
export interface ScanSource {
  readonly zone: string
  readonly recordTemplate: RecordTemplate
  /** Reads the whole zone in parts, each of which waits for `onPart` of the one before. Null: these were all. */
  readZone(onPart: (part: ZonePart) => Promise<void>): Promise<Unavailable | null>
  /** The names after `after`, in their order. */
  listNames(after: string, limit: number): Promise<CheckedName[]>
  /** Those of `subdomains` that have a row. */
  findNames(subdomains: readonly string[]): Promise<CheckedName[]>
}

/** Names per page: a bound on memory and on a statement. */
const PAGE_SIZE = 1_000

/** Record sets of the zone per statement that finds their rows. */
const LOOKUP_SIZE = 1_500

/** What one pass keeps in memory, as `weighEntry` counts it. */
const MAX_WEIGHT = 400_000

/** As the check constraint of the table: no other label has a row. */
const SUBDOMAIN = /^(?!..--)[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/**
 * One read of the whole zone. Of each name it keeps only the difference from the desired records. If there is too much
 * of it, the pass drops the names after `end`, and another pass reads the zone again for these.
 */
class ScanPass {
  readonly #source: ScanSource
  /** The pass is about the names after `#start`, up to `end`. */
  readonly #start: string
  readonly #startedAt = performance.now()
  readonly #entries: BoundedMap<ScanEntry>
  /** Record sets whose rows are not looked up yet. */
  #served: RecordSet[] = []
  #unserved: RecordSet[] = []
  #markers: RecordSet[] = []
  #hiding: Hiding = new Map()

  constructor(source: ScanSource, start: string, maxWeight: number) {
    this.#source = source
    this.#start = start
    this.#entries = new BoundedMap(maxWeight, weighEntry)
  }

  /** Null: the pass is about all names after its start. */
  get end(): string | null {
    return this.#entries.end
  }

  async add(part: ZonePart): Promise<void> {
    if (part.kind === 'restart') {
      this.#entries.clear()
      this.#served = []
      this.#unserved = []
      this.#markers = []
      return
    }
    if (part.hiding) this.#hiding = part.hiding
    const markerName = toMarkerName(this.#source.zone)
    for (const set of part.records) (set.name === markerName ? this.#markers : this.#served).push(set)
    for (const set of part.unserved ?? []) this.#unserved.push(set)
    if (this.#served.length + this.#unserved.length >= LOOKUP_SIZE) await this.#lookUp()
  }

  async #lookUp(): Promise<void> {
    const { zone, recordTemplate } = this.#source
    const served = this.#groupBySubdomain(this.#served)
    const unserved = this.#groupBySubdomain(this.#unserved)
    this.#served = []
    this.#unserved = []
    const subdomains = [...new Set([...served.keys(), ...unserved.keys()])]
    if (subdomains.length === 0) return
    const rows = await this.#source.findNames(subdomains)
    const bySubdomain = new Map(rows.map(row => [row.subdomain, row]))
    for (const subdomain of subdomains) {
      const row = bySubdomain.get(subdomain)
      const entry = this.#entries.get(subdomain)
      const found = { served: served.get(subdomain) ?? [], unserved: unserved.get(subdomain) ?? [] }
      this.#entries.set(
        subdomain,
        row
          ? addKnown(entry, { zone, template: recordTemplate }, row, found)
          : addUnknown(entry, `${subdomain}.${zone}`, recordTemplate, found),
      )
    }
  }

  #isInRange(subdomain: string): boolean {
    return subdomain > this.#start && (this.end === null || subdomain <= this.end)
  }

  #groupBySubdomain(sets: readonly RecordSet[]): Map<string, RecordSet[]> {
    const groups = Map.groupBy(sets, set => toSubdomain(set.name, this.#source.zone) ?? '')
    for (const subdomain of groups.keys())
      if (!SUBDOMAIN.test(subdomain) || !this.#isInRange(subdomain)) groups.delete(subdomain)
    return groups
  }

  /** What the pass has found, after the last part of the zone. */
  async *pages(): AsyncGenerator<ScanPage, void> {
    await this.#lookUp()
    const toPage = (
      names: readonly ScannedName[],
      orphans: readonly Orphan[] = [],
      delegated: readonly string[] = [],
    ): ScanPage => ({
      kind: 'page',
      names,
      orphans,
      delegated,
      markers: parseMarkers(this.#source.zone, this.#markers),
      hiding: this.#hiding,
      readMsAgo: performance.now() - this.#startedAt,
    })
    yield toPage([])
    for (let after: string | undefined = this.#start; after !== undefined; ) {
      const rows: CheckedName[] = await this.#source.listNames(after, PAGE_SIZE)
      const inRange = rows.filter(({ subdomain }) => this.#isInRange(subdomain))
      const names = inRange.flatMap(row => toScannedName(this.#entries.get(row.subdomain), row) ?? [])
      if (inRange.length > 0) yield toPage(names)
      after = inRange.length === PAGE_SIZE ? inRange.at(-1)?.subdomain : undefined
    }
    const candidates: { readonly subdomain: string; readonly entry: OrphanCandidate }[] = []
    for (const [subdomain, entry] of this.#entries.entries())
      if (entry instanceof OrphanCandidate) candidates.push({ subdomain, entry })
    candidates.sort((a, b) => (a.subdomain < b.subdomain ? -1 : 1))
    for (let i = 0; i < candidates.length; i += PAGE_SIZE) {
      const page = candidates.slice(i, i + PAGE_SIZE)
      const orphans = page.flatMap(({ subdomain, entry }) => entry.toOrphan(subdomain) ?? [])
      const delegated = page.flatMap(({ subdomain, entry }) => (entry.isDelegated ? [subdomain] : []))
      if (orphans.length + delegated.length > 0) yield toPage([], orphans, delegated)
    }
  }
}

/**
 * Compares the whole zone with the rows of its names. The zone is read as a stream, in any order; memory depends on the number
 * of names and on the differences, and is bounded by `maxWeight`. `unavailable` is the last element.
 */
export const scanZone = async function* (
  source: ScanSource,
  maxWeight = MAX_WEIGHT,
): AsyncGenerator<ScanPage | Unavailable, void> {
  for (let start: string | null = ''; start !== null; ) {
    const pass: ScanPass = new ScanPass(source, start, maxWeight)
    const failure = await source.readZone(part => pass.add(part))
    if (failure) return yield failure
    yield* pass.pages()
    start = pass.end
  }
}

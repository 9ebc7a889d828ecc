import type { Unavailable, ZonePart } from '../dns/domain/result.ts'
import { mergeRecordSets, type RecordSet, type RecordTemplate, recordKey, sameRecordSet } from '../dns/domain/rrset.ts'
import { type Orphan, OrphanCandidate } from './domain/orphan.ts'
import { createRelevance, toSubdomain } from './domain/plan.ts'
import { parseMarkers, toMarkerName, type ZoneMarker } from './domain/zone-marker.ts'
import type { ProviderClient } from './provider-client.ts'
import type { CheckedName, ReconcilerRepository } from './repository.ts'

/** A name with a row, and what the zone has for it. */
export interface ScannedName {
  readonly name: CheckedName
  /** Those that its plan can depend on. */
  readonly records: readonly RecordSet[]
  readonly unserved: readonly RecordSet[]
  /** `records` are the desired ones, and `unserved` is empty. */
  readonly isAsDesired: boolean
}

export interface ScanPage {
  readonly kind: 'page'
  /** In their order, which continues on the next page. Not those that changed during the scan. */
  readonly names: readonly ScannedName[]
  /** Names without a row whose records match the template, in their order. */
  readonly orphans: readonly Orphan[]
  /** The markers of the zone. They are on the first page, which is always there. */
  readonly markers: readonly ZoneMarker[]
  /** Milliseconds since the read of the zone that the page is about began. */
  readonly readMsAgo: number
}

export interface ScanContext {
  readonly repository: Pick<ReconcilerRepository, 'listNames' | 'findNames'>
  readonly provider: Pick<ProviderClient, 'readZone'>
  readonly recordTemplate: RecordTemplate
  /** How much one pass keeps in memory; default: `MAX_WEIGHT`. */
  readonly maxWeight?: number
}

/** Names per page: a bound on memory and on a statement. */
const PAGE_SIZE = 1_000

/** Record sets of the zone per statement that finds their rows. */
const LOOKUP_SIZE = 1_500

/** Names and record sets that one pass keeps, in units of about 100 bytes. */
const MAX_WEIGHT = 400_000
/** The weight of a record set. A name has the weight 1. */
const RECORD_SET_WEIGHT = 4

/** As the check constraint of the table: no other label has a row. */
const SUBDOMAIN = /^(?!..--)[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** Shared by all complete names. */
const NONE: readonly RecordSet[] = []

/** A name with a row that is not complete: what the pass has found of its desired records, and of others. */
interface KnownName {
  readonly version: number
  /** The desired record sets that are not found yet. */
  missing: readonly RecordSet[]
  extra: readonly RecordSet[]
  unserved: readonly RecordSet[]
  isChanging: boolean
}

/**
 * One read of the whole zone. Of each name it keeps only the difference from the desired records. If there is too much
 * of it, the pass drops the names after `end`, and another pass reads the zone again for these.
 */
class ScanPass {
  readonly #context: ScanContext
  readonly #zone: string
  /** The pass is about the names after `#start`, up to `end` (null: all). */
  readonly #start: string
  end: string | null = null
  readonly #startedAt = performance.now()
  readonly #known = new Map<string, KnownName>()
  /** The version of each name of which the pass has found exactly the desired records: most names. */
  readonly #complete = new Map<string, number>()
  readonly #unknown = new Map<string, OrphanCandidate>()
  #weight = 0
  /** Record sets whose rows are not looked up yet. */
  #served: RecordSet[] = []
  #unserved: RecordSet[] = []
  #markers: RecordSet[] = []

  constructor(context: ScanContext, zone: string, start: string) {
    this.#context = context
    this.#zone = zone
    this.#start = start
  }

  async add(part: ZonePart): Promise<void> {
    if (part.kind === 'restart') {
      this.#known.clear()
      this.#complete.clear()
      this.#unknown.clear()
      this.#weight = 0
      this.end = null
      this.#served = []
      this.#unserved = []
      this.#markers = []
      return
    }
    const markerName = toMarkerName(this.#zone)
    for (const set of part.records) (set.name === markerName ? this.#markers : this.#served).push(set)
    for (const set of part.unserved ?? []) this.#unserved.push(set)
    if (this.#served.length + this.#unserved.length >= LOOKUP_SIZE) await this.#lookUp()
  }

  async #lookUp(): Promise<void> {
    const served = this.#groupBySubdomain(this.#served)
    const unserved = this.#groupBySubdomain(this.#unserved)
    this.#served = []
    this.#unserved = []
    const subdomains = [...new Set([...served.keys(), ...unserved.keys()])]
    if (subdomains.length === 0) return
    const rows = await this.#context.repository.findNames(this.#zone, subdomains)
    const bySubdomain = new Map(rows.map(row => [row.subdomain, row]))
    for (const subdomain of subdomains) {
      const row = bySubdomain.get(subdomain)
      const own = { served: served.get(subdomain) ?? NONE, unserved: unserved.get(subdomain) ?? NONE }
      if (row) this.#addKnown(row, own.served, own.unserved)
      else this.#addUnknown(subdomain, own.served, own.unserved)
    }
    this.#limitWeight()
  }

  #isInRange(subdomain: string): boolean {
    return subdomain > this.#start && (this.end === null || subdomain <= this.end)
  }

  #groupBySubdomain(sets: readonly RecordSet[]): Map<string, RecordSet[]> {
    const groups = new Map<string, RecordSet[]>()
    for (const set of sets) {
      const subdomain = toSubdomain(set.name, this.#zone)
      if (subdomain === null || !SUBDOMAIN.test(subdomain) || !this.#isInRange(subdomain)) continue
      const group = groups.get(subdomain)
      if (group) group.push(set)
      else groups.set(subdomain, [set])
    }
    return groups
  }

  #addKnown(row: CheckedName, served: readonly RecordSet[], unserved: readonly RecordSet[]): void {
    const { subdomain } = row
    const before = this.#known.get(subdomain)
    const completeVersion = this.#complete.get(subdomain)
    const known: KnownName = before ?? {
      version: completeVersion ?? row.version,
      missing: completeVersion === undefined ? row.desired : NONE,
      extra: NONE,
      unserved: NONE,
      isChanging: this.#unknown.has(subdomain),
    }
    if (before) this.#weight -= this.#toWeight(before)
    else if (completeVersion !== undefined) this.#weight -= 1
    this.#known.delete(subdomain)
    this.#complete.delete(subdomain)
    known.isChanging ||= known.version !== row.version
    const others = served.filter(set => {
      if (!known.missing.some(missing => sameRecordSet(missing, set))) return true
      known.missing = known.missing.filter(missing => recordKey(missing) !== recordKey(set))
      return false
    })
    const relevant = others.length > 0 ? others.filter(createRelevance(this.#zone, row)) : NONE
    if (relevant.length > 0) known.extra = [...known.extra, ...relevant]
    if (unserved.length > 0 && row.isPurged) known.unserved = [...known.unserved, ...unserved]
    const isComplete = known.missing.length + known.extra.length + known.unserved.length === 0 && !known.isChanging
    if (isComplete) this.#complete.set(subdomain, known.version)
    else this.#known.set(subdomain, known)
    this.#weight += isComplete ? 1 : this.#toWeight(known)
  }

  #addUnknown(subdomain: string, served: readonly RecordSet[], unserved: readonly RecordSet[]): void {
    const known = this.#known.get(subdomain)
    if (known) known.isChanging = true
    // Its row was deleted since: no listed row has this version.
    if (known || this.#complete.has(subdomain)) return
    const candidate =
      this.#unknown.get(subdomain) ?? new OrphanCandidate(`${subdomain}.${this.#zone}`, this.#context.recordTemplate)
    for (const set of served) candidate.add(set, { isServed: true })
    for (const set of unserved) candidate.add(set, { isServed: false })
    if (!this.#unknown.has(subdomain)) this.#weight += RECORD_SET_WEIGHT
    this.#unknown.set(subdomain, candidate)
  }

  #toWeight({ missing, extra, unserved }: KnownName): number {
    return 1 + RECORD_SET_WEIGHT * (missing.length + extra.length + unserved.length)
  }

  /** Drops the second half of the names until the rest is small enough. */
  #limitWeight(): void {
    const { maxWeight = MAX_WEIGHT } = this.#context
    while (this.#weight > maxWeight && this.#known.size + this.#complete.size + this.#unknown.size > 1) {
      const all = [...this.#known.keys(), ...this.#complete.keys(), ...this.#unknown.keys()]
      const names = [...new Set(all)].sort()
      const end = names[Math.ceil(names.length / 2) - 1] ?? ''
      this.end = end
      for (const [subdomain, known] of this.#known) {
        if (subdomain <= end) continue
        this.#weight -= this.#toWeight(known)
        this.#known.delete(subdomain)
      }
      for (const subdomain of this.#complete.keys()) {
        if (subdomain <= end) continue
        this.#weight -= 1
        this.#complete.delete(subdomain)
      }
      for (const subdomain of this.#unknown.keys()) {
        if (subdomain <= end) continue
        this.#weight -= RECORD_SET_WEIGHT
        this.#unknown.delete(subdomain)
      }
    }
  }

  /** What the pass has found, after the last part of the zone. */
  async *pages(): AsyncGenerator<ScanPage, void> {
    await this.#lookUp()
    const toPage = (names: readonly ScannedName[], orphans: readonly Orphan[]): ScanPage => ({
      kind: 'page',
      names,
      orphans,
      markers: parseMarkers(this.#zone, this.#markers),
      readMsAgo: performance.now() - this.#startedAt,
    })
    yield toPage([], [])
    for (let after: string | undefined = this.#start; after !== undefined; ) {
      const rows: CheckedName[] = await this.#context.repository.listNames(this.#zone, after, PAGE_SIZE)
      const inRange = rows.filter(({ subdomain }) => this.#isInRange(subdomain))
      if (inRange.length > 0)
        yield toPage(
          inRange.flatMap(row => this.#toScannedName(row)),
          [],
        )
      after = inRange.length === PAGE_SIZE ? inRange.at(-1)?.subdomain : undefined
    }
    const unknown = [...this.#unknown.keys()].sort()
    for (let i = 0; i < unknown.length; i += PAGE_SIZE) {
      const orphans = unknown.slice(i, i + PAGE_SIZE).flatMap(subdomain => {
        const orphan = this.#unknown.get(subdomain)?.toOrphan(subdomain)
        return orphan ? [orphan] : []
      })
      if (orphans.length > 0) yield toPage([], orphans)
    }
  }

  #toScannedName(name: CheckedName): ScannedName[] {
    const { subdomain } = name
    if (this.#complete.get(subdomain) === name.version)
      return [{ name, records: name.desired, unserved: NONE, isAsDesired: true }]
    if (this.#complete.has(subdomain)) return []
    const known = this.#known.get(subdomain)
    const isChanging = known ? known.isChanging || known.version !== name.version : this.#unknown.has(subdomain)
    if (isChanging) return []
    if (!known) return [{ name, records: NONE, unserved: NONE, isAsDesired: name.desired.length === 0 }]
    const missing = new Set(known.missing.map(recordKey))
    const found = name.desired.filter(set => !missing.has(recordKey(set)))
    const [extra, unserved] = [mergeRecordSets(known.extra), mergeRecordSets(known.unserved)]
    const isAsDesired = missing.size + extra.length + unserved.length === 0
    return [{ name, records: [...found, ...extra], unserved, isAsDesired }]
  }
}

/**
 * Compares the whole zone with the rows of its names. The zone is read as a stream, in any order; memory depends on the number
 * of names and on the differences, and is bounded. `unavailable` is the last element.
 */
export const scanZone = async function* (
  context: ScanContext,
  zone: string,
): AsyncGenerator<ScanPage | Unavailable, void> {
  for (let start: string | null = ''; start !== null; ) {
    const pass: ScanPass = new ScanPass(context, zone, start)
    const failure = await context.provider.readZone(zone, part => pass.add(part))
    if (failure) return yield failure
    yield* pass.pages()
    start = pass.end
  }
}

import { mergeRecordSets, type RecordSet, recordKey, sameRecordSet } from '../../dns/domain/rrset.ts'
import { canBeOfTarget, type RecordTemplate } from '../../dns/domain/target.ts'
import type { CheckedName } from './name.ts'
import { OrphanCandidate } from './orphan.ts'
import { createRelevance } from './plan.ts'

/** A name with a row, and what the zone has for it. */
export interface ScannedName {
  readonly name: CheckedName
  /** Those that its plan can depend on. */
  readonly records: readonly RecordSet[]
  readonly unserved: readonly RecordSet[]
  /** `records` are the desired ones, and `unserved` is empty. */
  readonly isAsDesired: boolean
}

/** The version of a name of which a scan has found exactly the desired records: most names. */
export type CompleteName = number

/** A name with a row that is not complete: what a scan has found of its desired records, and of others. */
export interface IncompleteName {
  readonly version: number
  /** The desired record sets that are not found yet. */
  readonly missing: readonly RecordSet[]
  readonly extra: readonly RecordSet[]
  readonly unserved: readonly RecordSet[]
  readonly isChanging: boolean
}

/** What a scan keeps of a name: only the difference from its row. */
export type ScanEntry = CompleteName | IncompleteName | OrphanCandidate

/** Record sets at and below a name. */
export interface FoundRecords {
  readonly served: readonly RecordSet[]
  readonly unserved: readonly RecordSet[]
}

/** The weight of a record set. A name has the weight 1. */
const RECORD_SET_WEIGHT = 4

/** Shared by all complete names. */
const NONE: readonly RecordSet[] = []

const countSets = ({ missing, extra, unserved }: IncompleteName): number =>
  missing.length + extra.length + unserved.length

/** Names and record sets, in units of about 100 bytes. */
export const weighEntry = (entry: ScanEntry): number => {
  if (typeof entry === 'number') return 1
  return entry instanceof OrphanCandidate ? RECORD_SET_WEIGHT : 1 + RECORD_SET_WEIGHT * countSets(entry)
}

const toIncomplete = (entry: ScanEntry | undefined, { version, desired }: CheckedName): IncompleteName => {
  const nothing = { extra: NONE, unserved: NONE }
  if (typeof entry === 'number') return { ...nothing, version: entry, missing: NONE, isChanging: false }
  if (entry === undefined) return { ...nothing, version, missing: desired, isChanging: false }
  // It had no row before.
  return entry instanceof OrphanCandidate ? { ...nothing, version, missing: desired, isChanging: true } : entry
}

/** The entry with more records of a name that has the row `row` now. It keeps those of another target too. */
export const addKnown = (
  entry: ScanEntry | undefined,
  { zone, template }: { readonly zone: string; readonly template: RecordTemplate },
  row: CheckedName,
  { served, unserved }: FoundRecords,
): ScanEntry => {
  const before = toIncomplete(entry, row)
  let { missing } = before
  const others = served.filter(set => {
    if (!missing.some(wanted => sameRecordSet(wanted, set))) return true
    missing = missing.filter(wanted => recordKey(wanted) !== recordKey(set))
    return false
  })
  const isRelevant = others.length > 0 ? createRelevance(zone, row) : () => false
  const fqdn = `${row.subdomain}.${zone}`
  const relevant = others.filter(set => isRelevant(set) || canBeOfTarget(set, fqdn, template))
  const after: IncompleteName = {
    version: before.version,
    missing,
    extra: relevant.length > 0 ? [...before.extra, ...relevant] : before.extra,
    unserved: unserved.length > 0 && row.isPurged ? [...before.unserved, ...unserved] : before.unserved,
    isChanging: before.isChanging || before.version !== row.version,
  }
  return countSets(after) === 0 && !after.isChanging ? after.version : after
}

/** The entry with more records of a name that has no row now. */
export const addUnknown = (
  entry: ScanEntry | undefined,
  fqdn: string,
  template: RecordTemplate,
  { served, unserved }: FoundRecords,
): ScanEntry => {
  // Its row was deleted since: no listed row has this version.
  if (typeof entry === 'number') return entry
  if (entry && !(entry instanceof OrphanCandidate)) return { ...entry, isChanging: true }
  const candidate = entry ?? new OrphanCandidate(fqdn, template)
  for (const set of served) candidate.add(set, { isServed: true })
  for (const set of unserved) candidate.add(set, { isServed: false })
  return candidate
}

/** What the scan has found for the row `name`. Null: the name changed during the scan. */
export const toScannedName = (entry: ScanEntry | undefined, name: CheckedName): ScannedName | null => {
  const { desired } = name
  if (entry === undefined) return { name, records: NONE, unserved: NONE, isAsDesired: desired.length === 0 }
  if (typeof entry === 'number') {
    return entry === name.version ? { name, records: desired, unserved: NONE, isAsDesired: true } : null
  }
  if (entry instanceof OrphanCandidate || entry.isChanging || entry.version !== name.version) return null
  const missing = new Set(entry.missing.map(recordKey))
  const found = desired.filter(set => !missing.has(recordKey(set)))
  const [extra, unserved] = [mergeRecordSets(entry.extra), mergeRecordSets(entry.unserved)]
  const isAsDesired = missing.size + extra.length + unserved.length === 0
  return { name, records: [...found, ...extra], unserved, isAsDesired }
}

/** A map that drops the upper half of its keys, in their order, as long as its values are too heavy. */
export class BoundedMap<Value> {
  readonly #maxWeight: number
  readonly #weigh: (value: Value) => number
  readonly #values = new Map<string, Value>()
  #weight = 0
  #end: string | null = null

  constructor(maxWeight: number, weigh: (value: Value) => number) {
    this.#maxWeight = maxWeight
    this.#weigh = weigh
  }

  /** The last key that the map accepts; null: it accepts all. */
  get end(): string | null {
    return this.#end
  }

  get(key: string): Value | undefined {
    return this.#values.get(key)
  }

  entries(): MapIterator<[string, Value]> {
    return this.#values.entries()
  }

  set(key: string, value: Value): void {
    if (this.#end !== null && key > this.#end) return
    const before = this.#values.get(key)
    this.#weight += this.#weigh(value) - (before === undefined ? 0 : this.#weigh(before))
    this.#values.set(key, value)
    // A single key stays, however heavy it is.
    while (this.#weight > this.#maxWeight && this.#values.size > 1) this.#dropUpperHalf()
  }

  clear(): void {
    this.#values.clear()
    this.#weight = 0
    this.#end = null
  }

  #dropUpperHalf(): void {
    const keys = [...this.#values.keys()].sort()
    const half = Math.ceil(keys.length / 2)
    this.#end = keys[half - 1] ?? null
    for (const key of keys.slice(half)) {
      const value = this.#values.get(key)
      if (value !== undefined) this.#weight -= this.#weigh(value)
      this.#values.delete(key)
    }
  }
}

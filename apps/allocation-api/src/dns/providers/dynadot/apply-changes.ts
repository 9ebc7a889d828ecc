import { changeKey, type RecordChange, type RecordSet, recordKey, toOwner } from '../../domain/rrset.ts'
import { type DynadotRecord, dynadotRecordsOf, keyOf, nameOf, recordSetsOf, refusalOf } from './record.ts'

/** The most records that set_dns2 takes: main_record0 to 19, sub_record0 to 99. */
const most = {
  main: { count: 20, of: 'the domain itself' },
  sub: { count: 100, of: 'names below the domain' },
} as const

/** RFC 1034 section 3.6.2 for CNAME; a forwarded name is answered with the address of Dynadot's web servers. */
const standsAlone = new Set(['CNAME', 'FORWARD', 'STEALTH'])

export interface Outcome {
  /** Everything that the domain is to have: what was not named by a change is as it was. */
  readonly records: readonly DynadotRecord[]
  readonly isChanged: boolean
  /** Owner name to reason. Nothing is changed at these. */
  readonly refused: ReadonlyMap<string, string>
}

const obstacleTo = (set: RecordSet, records: readonly DynadotRecord[], zone: string): string | undefined =>
  records
    .filter(record => nameOf(record, zone) === set.name && keyOf(record, zone) !== recordKey(set))
    .map(record => record.type.toUpperCase())
    .find(type => standsAlone.has(type) || set.type === 'CNAME')

const isSame = (present: readonly DynadotRecord[], { ttl, values }: RecordSet, zone: string): boolean => {
  const wanted = Array.from(new Set(values)).sort()
  return JSON.stringify(recordSetsOf(present, zone, ttl)[0]?.values ?? []) === JSON.stringify(wanted)
}

const attempt = (
  before: readonly DynadotRecord[],
  changes: readonly RecordChange[],
  zone: string,
): Omit<Outcome, 'refused'> & { readonly refused: Map<string, string> } => {
  const refused = new Map<string, string>()
  const gone = new Set(changes.filter(change => change.kind === 'delete').map(recordKey))
  let records = before.filter(record => !gone.has(keyOf(record, zone)))
  let isChanged = records.length < before.length
  for (const change of changes) {
    if (change.kind === 'delete') continue
    const { set } = change
    const key = recordKey(set)
    const present = records.filter(record => keyOf(record, zone) === key)
    if (isSame(present, set, zone)) continue
    const obstacle = obstacleTo(set, records, zone)
    if (obstacle) {
      refused.set(set.name, `a ${obstacle} record stands at this name`)
      continue
    }
    const added = dynadotRecordsOf({ ...set, values: Array.from(new Set(set.values)).sort() }, zone)
    const after = [...records.filter(record => keyOf(record, zone) !== key), ...added]
    const place = set.name === zone ? 'main' : 'sub'
    const count = after.filter(record => record.place === place).length
    if (count > most[place].count) {
      const limit = `${most[place].count} records of ${most[place].of}`
      refused.set(set.name, `Dynadot holds ${limit} at most, and this would make it ${count}`)
      continue
    }
    records = after
    isChanged = true
  }
  return { records, isChanged, refused }
}

/**
 * `changes` made to the whole set that the domain has. A name of which one change is refused is left as it is: when
 * that keeps records which others counted on being gone, those are refused too. The last change of a record set counts.
 */
export const outcomeOf = (
  before: readonly DynadotRecord[],
  changes: readonly RecordChange[],
  zone: string,
): Outcome => {
  const latest = Array.from(new Map(changes.map(change => [changeKey(change), change])).values())
  const refused = new Map<string, string>()
  for (const change of latest) {
    const reason = change.kind === 'upsert' ? refusalOf(change.set, zone) : undefined
    if (reason !== undefined) refused.set(toOwner(change), reason)
  }
  for (;;) {
    const accepted = latest.filter(change => !refused.has(toOwner(change)))
    const { refused: more, ...outcome } = attempt(before, accepted, zone)
    if (more.size === 0) return { ...outcome, refused }
    for (const [name, reason] of more) refused.set(name, reason)
  }
}

/** All changes at one owner name: they are made together or not at all. */
export interface NameChanges {
  readonly name: string
  readonly changes: readonly RecordChange[]
}

/**
 * The names at which something is to be done. Those that need no more room than they have come first, for they may make
 * some; then in the order of names, so that of those that do not all fit it is the same that are left out each time.
 */
export const namesOf = (
  before: readonly DynadotRecord[],
  changes: readonly RecordChange[],
  zone: string,
): NameChanges[] =>
  Array.from(
    Map.groupBy(changes, change => toOwner(change)),
    ([name, itsChanges]) => {
      const { records, isChanged, refused } = outcomeOf(before, itsChanges, zone)
      return {
        name,
        changes: itsChanges,
        isNeeded: isChanged || refused.size > 0,
        isGrowing: refused.size > 0 || records.length > before.length,
      }
    },
  )
    .filter(({ isNeeded }) => isNeeded)
    .sort((a, b) => Number(a.isGrowing) - Number(b.isGrowing) || (a.name < b.name ? -1 : 1))

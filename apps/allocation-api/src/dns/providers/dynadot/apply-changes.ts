import { changeKey, type RecordChange, type RecordSet, recordKey, toOwnerName } from '../../domain/rrset.ts'
import { type DynadotRecord, toDynadotRecords, toKey, toName, toRecordSets, validateRecordSet } from './record.ts'

/** The most records that set_dns2 takes: main_record0 to 19, sub_record0 to 99. */
const MAX_RECORDS = {
  main: { count: 20, of: 'the domain itself' },
  sub: { count: 100, of: 'names below the domain' },
} as const

/** RFC 1034 section 3.6.2 for CNAME; a forwarded name is answered with the address of Dynadot's web servers. */
const standsAlone = new Set(['CNAME', 'FORWARD', 'STEALTH'])

export interface ChangedSet {
  /** Everything that the domain is to have: what was not named by a change is as it was. */
  readonly records: readonly DynadotRecord[]
  readonly isChanged: boolean
  /** Owner name to reason. Nothing is changed at these. */
  readonly rejected: ReadonlyMap<string, string>
}

const findConflict = (set: RecordSet, records: readonly DynadotRecord[], zone: string): string | undefined =>
  records
    .filter(record => toName(record, zone) === set.name && toKey(record, zone) !== recordKey(set))
    .map(record => record.type.toUpperCase())
    .find(type => standsAlone.has(type) || set.type === 'CNAME')

const isSame = (present: readonly DynadotRecord[], { ttl, values }: RecordSet, zone: string): boolean => {
  const wanted = Array.from(new Set(values)).sort()
  return JSON.stringify(toRecordSets(present, zone, ttl)[0]?.values ?? []) === JSON.stringify(wanted)
}

const attempt = (
  before: readonly DynadotRecord[],
  changes: readonly RecordChange[],
  zone: string,
): Omit<ChangedSet, 'rejected'> & { readonly rejected: Map<string, string> } => {
  const rejected = new Map<string, string>()
  const gone = new Set(changes.filter(change => change.kind === 'delete').map(recordKey))
  let records = before.filter(record => !gone.has(toKey(record, zone)))
  let isChanged = records.length < before.length
  for (const change of changes) {
    if (change.kind === 'delete') continue
    const { set } = change
    const key = recordKey(set)
    const present = records.filter(record => toKey(record, zone) === key)
    if (isSame(present, set, zone)) continue
    const obstacle = findConflict(set, records, zone)
    if (obstacle) {
      rejected.set(set.name, `a ${obstacle} record stands at this name`)
      continue
    }
    const added = toDynadotRecords({ ...set, values: Array.from(new Set(set.values)).sort() }, zone)
    const after = [...records.filter(record => toKey(record, zone) !== key), ...added]
    const place = set.name === zone ? 'main' : 'sub'
    const count = after.filter(record => record.place === place).length
    if (count > MAX_RECORDS[place].count) {
      const limit = `${MAX_RECORDS[place].count} records of ${MAX_RECORDS[place].of}`
      rejected.set(set.name, `Dynadot holds ${limit} at most, and this would make it ${count}`)
      continue
    }
    records = after
    isChanged = true
  }
  return { records, isChanged, rejected }
}

/**
 * `changes` made to the whole set that the domain has. A name of which one change is rejected is left as it is: when
 * that keeps records which others counted on being gone, those are rejected too. The last change of a record set counts.
 */
export const applyChanges = (
  before: readonly DynadotRecord[],
  changes: readonly RecordChange[],
  zone: string,
): ChangedSet => {
  const latest = Array.from(new Map(changes.map(change => [changeKey(change), change])).values())
  const rejected = new Map<string, string>()
  for (const change of latest) {
    const reason = change.kind === 'upsert' ? validateRecordSet(change.set, zone) : undefined
    if (reason !== undefined) rejected.set(toOwnerName(change), reason)
  }
  for (;;) {
    const accepted = latest.filter(change => !rejected.has(toOwnerName(change)))
    const { rejected: more, ...outcome } = attempt(before, accepted, zone)
    if (more.size === 0) return { ...outcome, rejected }
    for (const [name, reason] of more) rejected.set(name, reason)
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
export const groupByName = (
  before: readonly DynadotRecord[],
  changes: readonly RecordChange[],
  zone: string,
): NameChanges[] =>
  Array.from(
    Map.groupBy(changes, change => toOwnerName(change)),
    ([name, itsChanges]) => {
      const { records, isChanged, rejected } = applyChanges(before, itsChanges, zone)
      return {
        name,
        changes: itsChanges,
        isNeeded: isChanged || rejected.size > 0,
        isGrowing: rejected.size > 0 || records.length > before.length,
      }
    },
  )
    .filter(({ isNeeded }) => isNeeded)
    .sort((a, b) => Number(a.isGrowing) - Number(b.isGrowing) || (a.name < b.name ? -1 : 1))

import { chunkBySize } from '../../../lib/chunk.ts'
import { type BatchResult, bisect } from '../../bisect.ts'
import { type ApplyResult, toZoneRefusal, type Unavailable } from '../../domain/result.ts'
import {
  changeKey,
  type RecordChange,
  type RecordSet,
  recordKey,
  toApplyResult,
  toOwnerName,
} from '../../domain/rrset.ts'
import type { DomainSettings, WriteResult } from './api.ts'
import { type DynadotRecord, parseRecordSets, toDynadotRecords, toKey, toName, validateRecordSet } from './record.ts'

/** The limits of set_dns2: main_record0 to 19, sub_record0 to 99. */
const MAX_RECORDS = {
  main: { count: 20, of: 'the domain itself' },
  sub: { count: 100, of: 'names below the domain' },
} as const

/** RFC 1034 section 3.6.2 for CNAME; a forwarded name is answered with the address of Dynadot's web servers. */
const standsAlone = new Set(['CNAME', 'FORWARD', 'STEALTH'])

interface ChangedSet {
  /** The domain's desired record set. Records that no change names are unmodified. */
  readonly records: readonly DynadotRecord[]
  readonly isChanged: boolean
  /** Owner name to reason. Records at these names are unchanged. */
  readonly rejected: ReadonlyMap<string, string>
  /** Those of `rejected` for which the domain has no room. */
  readonly full: ReadonlySet<string>
}

const findConflict = (set: RecordSet, records: readonly DynadotRecord[], zone: string): string | undefined =>
  records
    .filter(record => toName(record, zone) === set.name && toKey(record, zone) !== recordKey(set))
    .map(record => record.type.toUpperCase())
    .find(type => standsAlone.has(type) || set.type === 'CNAME')

const isSame = (present: readonly DynadotRecord[], { ttl, values }: RecordSet, zone: string): boolean => {
  const wanted = Array.from(new Set(values)).sort()
  return JSON.stringify(parseRecordSets(present, zone, ttl)[0]?.values ?? []) === JSON.stringify(wanted)
}

const tryChanges = (before: readonly DynadotRecord[], changes: readonly RecordChange[], zone: string): ChangedSet => {
  const rejected = new Map<string, string>()
  const full = new Set<string>()
  const gone = new Set(changes.filter(change => change.kind === 'delete').map(recordKey))
  let records = before.filter(record => !gone.has(toKey(record, zone)))
  let isChanged = records.length < before.length
  for (const change of changes) {
    if (change.kind === 'delete') continue
    const { set } = change
    const key = recordKey(set)
    const present = records.filter(record => toKey(record, zone) === key)
    if (isSame(present, set, zone)) continue
    const conflict = findConflict(set, records, zone)
    if (conflict) {
      rejected.set(set.name, `the name has a conflicting ${conflict} record`)
      continue
    }
    const added = toDynadotRecords({ ...set, values: Array.from(new Set(set.values)).sort() }, zone)
    const after = [...records.filter(record => toKey(record, zone) !== key), ...added]
    const place = set.name === zone ? 'main' : 'sub'
    const count = after.filter(record => record.place === place).length
    if (count > MAX_RECORDS[place].count) {
      const limit = `${MAX_RECORDS[place].count} records of ${MAX_RECORDS[place].of}`
      rejected.set(set.name, `Dynadot allows at most ${limit}, and this change would make ${count}`)
      full.add(set.name)
      continue
    }
    records = after
    isChanged = true
  }
  return { records, isChanged, rejected, full }
}

/**
 * Applies `changes` to the whole record set of the domain. If one change of a name is rejected, the name is unchanged.
 * If other changes needed the room of its records, those are rejected too. The last change of a record set wins.
 */
export const applyChanges = (
  before: readonly DynadotRecord[],
  changes: readonly RecordChange[],
  zone: string,
): ChangedSet => {
  const latest = Array.from(new Map(changes.map(change => [changeKey(change), change])).values())
  const rejected = new Map<string, string>()
  const full = new Set<string>()
  for (const change of latest) {
    const reason = change.kind === 'upsert' ? validateRecordSet(change.set, zone) : undefined
    if (reason !== undefined) rejected.set(toOwnerName(change), reason)
  }
  for (;;) {
    const accepted = latest.filter(change => !rejected.has(toOwnerName(change)))
    const { rejected: more, full: moreFull, ...outcome } = tryChanges(before, accepted, zone)
    if (more.size === 0) return { ...outcome, rejected, full }
    for (const [name, reason] of more) rejected.set(name, reason)
    for (const name of moreFull) full.add(name)
  }
}

/** All changes at one owner name: Dynadot applies all or none. */
interface NameChanges {
  readonly name: string
  readonly changes: readonly RecordChange[]
}

/**
 * The names that need a change. Names that do not grow come first, because they may free room. Then the order is by
 * name, so that if not all fit, the same ones are left out each time.
 */
const groupByName = (before: readonly DynadotRecord[], changes: readonly RecordChange[], zone: string): NameChanges[] =>
  Array.from(
    Map.groupBy(changes, change => toOwnerName(change)),
    ([name, ownChanges]) => {
      const { records, isChanged, rejected } = applyChanges(before, ownChanges, zone)
      return {
        name,
        changes: ownChanges,
        isNeeded: isChanged || rejected.size > 0,
        isGrowing: rejected.size > 0 || records.length > before.length,
      }
    },
  )
    .filter(({ isNeeded }) => isNeeded)
    .sort((a, b) => Number(a.isGrowing) - Number(b.isGrowing) || (a.name < b.name ? -1 : 1))

/** Owner names in one write. If all are faulty, bisection of this many finds one in eight writes. */
const MAX_NAMES = 128

/** These eight, and one to check the original set. An apply has 10 s in total; a write takes 0.3 to 1 s. */
const MAX_WRITES = 9

/**
 * Applies `changes` to the settings `before`: in one write if Dynadot accepts it, otherwise in as many as bisection
 * needs to find the rejected names, up to MAX_WRITES. Each write contains everything accepted so far.
 *
 * If Dynadot accepts no write, the original set is written once more; at once if it is not known that a record is at fault.
 * If even that is rejected, no change is at fault, so the zone is unavailable and no name is rejected. An empty original set
 * needs no such check.
 */
export const writeChanges = async (
  zone: string,
  before: DomainSettings,
  changes: readonly RecordChange[],
  write: (settings: DomainSettings) => Promise<WriteResult>,
): Promise<ApplyResult> => {
  const names = groupByName(before.records, changes, zone)
  const ttl =
    before.ttl ??
    names
      .flatMap(name => name.changes)
      .flatMap(change => (change.kind === 'upsert' ? [change.set] : []))
      .find(set => validateRecordSet(set, zone) === undefined)?.ttl
  const rejected = new Map<string, string>()
  const full = new Set<string>()
  const skipped = new Set(names.map(({ name }) => name))
  let records = before.records
  let writes = 0
  /** Whether Dynadot is known to accept the set in `records`. */
  let isSound = before.records.length === 0
  let isOriginalAccepted = false

  const toRefusal = (reason: string) => toZoneRefusal(`Dynadot refuses every change of ${zone}: ${reason}`)
  const checkOriginal = async (): Promise<Unavailable | undefined> => {
    const original = await write(before)
    isSound = true
    isOriginalAccepted = original.kind === 'accepted'
    if (original.kind === 'unavailable') return original
    if (original.kind === 'accepted') return undefined
    return original.isDoubtful
      ? toRefusal(original.reason)
      : toZoneRefusal(`Dynadot rejects the existing records of ${zone}: ${original.reason}`)
  }

  const attempt = async (batch: readonly NameChanges[]): Promise<BatchResult<NameChanges, Unavailable | undefined>> => {
    const after = applyChanges(
      records,
      batch.flatMap(name => name.changes),
      zone,
    )
    if (after.isChanged) {
      if (writes === (isSound ? MAX_WRITES : MAX_WRITES - 1)) return { kind: 'failed', failure: undefined }
      writes += 1
      const result = await write({ ...before, ttl, records: after.records })
      if (result.kind === 'unavailable') return { kind: 'failed', failure: result }
      if (result.kind === 'rejected' && result.isDoubtful && !isSound) {
        writes += 1
        const failure = await checkOriginal()
        if (failure) return { kind: 'failed', failure }
      }
      if (result.kind === 'rejected') {
        const [only] = batch
        if (only && batch.length === 1) {
          rejected.set(only.name, result.reason)
          skipped.delete(only.name)
        }
        return isOriginalAccepted ? { kind: 'rejected', reason: result.reason } : result
      }
      isSound = true
      records = after.records
    }
    for (const [name, reason] of after.rejected) rejected.set(name, reason)
    for (const name of after.full) full.add(name)
    for (const { name } of batch) skipped.delete(name)
    return { kind: 'accepted' }
  }

  const result = await bisect(
    chunkBySize(names, () => 1, MAX_NAMES),
    attempt,
    { maxRejections: MAX_WRITES },
  )
  if (result.kind === 'failed' && result.failure) return result.failure
  if (result.kind === 'refused') return toRefusal(result.reason)
  const failure = writes > 0 && !isSound ? await checkOriginal() : undefined
  return failure ?? toApplyResult(rejected, Array.from(skipped), full)
}

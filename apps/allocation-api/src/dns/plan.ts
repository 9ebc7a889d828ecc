import { type RecordChange, type RecordSet, recordKey, sameRecordSet } from './record-set.ts'

export interface OwnedKey {
  readonly name: string
  readonly type: string
}

/** One allocated name: what it must have, and every record set that may be at the provider because we wrote it. */
export interface DesiredName {
  readonly subdomain: string
  readonly desired: readonly RecordSet[]
  readonly owned: readonly OwnedKey[]
  /** An earlier write was not confirmed: it may still take effect, whatever the provider shows now. */
  readonly isUnconfirmed: boolean
}

export interface Plan {
  readonly changes: readonly RecordChange[]
  /** Names left alone because somebody else's record stands in the way: subdomain to reason. */
  readonly conflicts: ReadonlyMap<string, string>
}

/** RFC 1034 section 3.6.2: a CNAME stands alone at its name. */
const blocks = (foreign: RecordSet, wanted: RecordSet): boolean =>
  foreign.name === wanted.name && (foreign.type === 'CNAME' || wanted.type === 'CNAME')

/**
 * Desired minus current. Only record sets that are ours are changed or deleted; a foreign one at a name that we need is
 * a conflict, which sets that one allocated name aside and no other. A foreign set equal to the desired one is taken
 * as ours: it is what a database restored to an older day finds of its own writing.
 *
 * After a write that was not confirmed, all is said again, present or not: a provider that refuses what was planned on
 * an older state then refuses the late one, and one that does not has the newer order behind it.
 */
export const planOf = (current: readonly RecordSet[], names: readonly DesiredName[]): Plan => {
  const byKey = new Map(current.map(set => [recordKey(set), set]))
  const byName = Map.groupBy(current, set => set.name)
  const changes: RecordChange[] = []
  const conflicts = new Map<string, string>()

  for (const { subdomain, desired, owned, isUnconfirmed } of names) {
    const ours = new Set(owned.map(recordKey))
    const wanted = new Set(desired.map(recordKey))
    const obstacle = desired
      .flatMap(set => (byName.get(set.name) ?? []).map(present => ({ set, present })))
      .find(
        ({ set, present }) =>
          !ours.has(recordKey(present)) &&
          (blocks(present, set) || (present.type === set.type && !sameRecordSet(present, set))),
      )?.present
    if (obstacle) {
      conflicts.set(subdomain, `A ${obstacle.type} record that this service did not write stands at ${obstacle.name}.`)
      continue
    }
    // Deletions first: a provider that applies in order then never holds a CNAME beside another type.
    for (const key of owned) {
      const isPresent = isUnconfirmed || byKey.has(recordKey(key))
      if (isPresent && !wanted.has(recordKey(key))) changes.push({ kind: 'delete', ...key })
    }
    for (const set of desired) {
      const present = byKey.get(recordKey(set))
      if (isUnconfirmed || !present || !sameRecordSet(present, set)) changes.push({ kind: 'upsert', set })
    }
  }
  return { changes, conflicts }
}

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
 */
export const planOf = (current: readonly RecordSet[], names: readonly DesiredName[]): Plan => {
  const byKey = new Map(current.map(set => [recordKey(set), set]))
  const byName = Map.groupBy(current, set => set.name)
  const changes: RecordChange[] = []
  const conflicts = new Map<string, string>()

  for (const { subdomain, desired, owned } of names) {
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
      if (!wanted.has(recordKey(key)) && byKey.has(recordKey(key))) changes.push({ kind: 'delete', ...key })
    }
    for (const set of desired) {
      const present = byKey.get(recordKey(set))
      if (!present || !sameRecordSet(present, set)) changes.push({ kind: 'upsert', set })
    }
  }
  return { changes, conflicts }
}

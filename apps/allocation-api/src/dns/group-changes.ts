import type { ApplyResult } from './domain/result.ts'
import { changeKey, type RecordChange, toOwnerName } from './domain/rrset.ts'

/** Every change of one owner name. They are applied or rejected as a unit. */
export interface OwnerChanges {
  readonly name: string
  readonly changes: readonly RecordChange[]
}

/**
 * Groups changes by owner name. A name with a change that `validate` rejects is in `rejected`, with the reason. If there
 * are several changes to one record set, the last counts. Deletions first: a provider that applies in order then never
 * has a CNAME beside the records that replace it. Only the owner of the first change comes before them.
 */
export const groupByOwner = (
  changes: readonly RecordChange[],
  validate: (change: RecordChange) => string | undefined,
) => {
  const rejected = new Map<string, string>()
  for (const change of changes) {
    const reason = validate(change)
    if (reason !== undefined) rejected.set(toOwnerName(change), reason)
  }
  const last = [...new Map(changes.map(change => [changeKey(change), change])).values()]
  const wanted = last.filter(change => !rejected.has(toOwnerName(change)))
  const rank = (change: RecordChange) =>
    Number(change.kind === 'upsert') - 2 * Number(changes[0] && toOwnerName(change) === toOwnerName(changes[0]))
  const deletionsFirst = wanted.toSorted((a, b) => rank(a) - rank(b))
  const owners = Array.from(
    Map.groupBy(deletionsFirst, toOwnerName),
    ([name, own]): OwnerChanges => ({ name, changes: own }),
  )
  return { owners, rejected }
}

/** A rejected name is never also reported as skipped. */
export const toApplyResult = (rejected: ReadonlyMap<string, string>, skipped: readonly string[]): ApplyResult => {
  const left = skipped.filter(name => !rejected.has(name))
  const rejections = Array.from(rejected, ([name, reason]) => ({ name, reason }))
  return { kind: 'applied', rejected: rejections, ...(left.length > 0 ? { skipped: left } : {}) }
}

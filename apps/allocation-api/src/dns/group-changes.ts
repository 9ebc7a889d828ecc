import type { ApplyResult } from './domain/result.ts'
import { changeKey, type RecordChange, toOwner } from './domain/rrset.ts'

/** Every change of one owner name: they stand or fall together, as the port refuses by owner name. */
export interface OwnerChanges {
  readonly name: string
  readonly changes: readonly RecordChange[]
}

/**
 * By owner name, without the names of which `refusalOf` refuses a change; those apart, with the reason.
 * Of several changes to one record set the last counts. Deletions first: a provider that works in order then never
 * holds a CNAME beside what takes its place.
 */
export const groupByOwner = (
  changes: readonly RecordChange[],
  refusalOf: (change: RecordChange) => string | undefined,
) => {
  const refused = new Map<string, string>()
  for (const change of changes) {
    const reason = refusalOf(change)
    if (reason !== undefined) refused.set(toOwner(change), reason)
  }
  const last = [...new Map(changes.map(change => [changeKey(change), change])).values()]
  const wanted = last.filter(change => !refused.has(toOwner(change)))
  const deletionsFirst = wanted.toSorted((a, b) => Number(a.kind === 'upsert') - Number(b.kind === 'upsert'))
  const owners = Array.from(
    Map.groupBy(deletionsFirst, toOwner),
    ([name, own]): OwnerChanges => ({ name, changes: own }),
  )
  return { owners, refused }
}

/** The port's answer. What is refused, in whatever round, is not skipped. */
export const toApplyResult = (refused: ReadonlyMap<string, string>, skipped: readonly string[]): ApplyResult => {
  const left = skipped.filter(name => !refused.has(name))
  const told = Array.from(refused, ([name, reason]) => ({ name, reason }))
  return { kind: 'applied', refused: told, ...(left.length > 0 ? { skipped: left } : {}) }
}

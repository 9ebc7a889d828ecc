import { type RecordChange, type RecordSet, recordKey } from '../../../domain/rrset.ts'

/** Owner names at which `changes` would leave a CNAME beside another type (RFC 1034 section 3.6.2 forbids it). */
export const namesWithCnameBeside = (present: readonly RecordSet[], changes: readonly RecordChange[]): Set<string> => {
  const after = new Map(present.map(({ name, type }) => [recordKey({ name, type }), { name, type }]))
  for (const change of changes) {
    const { name, type } = change.kind === 'upsert' ? change.set : change
    if (change.kind === 'upsert') after.set(recordKey({ name, type }), { name, type })
    else after.delete(recordKey({ name, type }))
  }
  const byName = Map.groupBy(after.values(), ({ name }) => name)
  const beside = [...byName].filter(([, sets]) => sets.length > 1 && sets.some(({ type }) => type === 'CNAME'))
  return new Set(beside.map(([name]) => name))
}

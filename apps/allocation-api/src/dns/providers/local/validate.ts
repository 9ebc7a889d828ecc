import { isAtOrBelow, type RecordChange, type RecordSet, recordKey } from '../../domain/rrset.ts'
import { isName, isRecordValue } from '../../rdata.ts'

/** Why the local server cannot store `change`; undefined: it can. */
export const validateChange = (zone: string, change: RecordChange): string | undefined => {
  if (change.kind === 'delete') return undefined
  const { name, type, ttl, values } = change.set
  if (!isAtOrBelow(name, zone) || !isName(name)) return 'the name is not a name of this zone'
  if (type === 'NS' || type === 'SOA')
    return 'the local DNS server creates NS and SOA records itself and has no delegations'
  // RFC 2181 section 8: 31 bits.
  if (!Number.isInteger(ttl) || ttl < 0 || ttl > 2 ** 31 - 1) return 'the TTL is not between 0 and 2147483647 seconds'
  if (values.length === 0) return 'the record set has no value'
  if (values.some(value => !isRecordValue(type, value)))
    return `the local DNS server does not support this ${type} record`
  if (type === 'CNAME' && values.length > 1) return 'a name can have only one CNAME'
  return undefined
}

/** Owner names that would have a CNAME and another type after `changes` (forbidden by RFC 1034 section 3.6.2). */
export const findCnameConflicts = (existing: readonly RecordSet[], changes: readonly RecordChange[]): Set<string> => {
  const after = new Map(existing.map(({ name, type }) => [recordKey({ name, type }), { name, type }]))
  for (const change of changes) {
    const { name, type } = change.kind === 'upsert' ? change.set : change
    if (change.kind === 'upsert') after.set(recordKey({ name, type }), { name, type })
    else after.delete(recordKey({ name, type }))
  }
  const byName = Map.groupBy(after.values(), ({ name }) => name)
  const conflicts = [...byName].filter(([, sets]) => sets.length > 1 && sets.some(({ type }) => type === 'CNAME'))
  return new Set(conflicts.map(([name]) => name))
}

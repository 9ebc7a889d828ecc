import { isAtOrBelow, type RecordChange, toOwnerName } from '../../domain/rrset.ts'
import type { UnservedRecords } from './zone.ts'

/**
 * What the server would take amiss without a word: it stores a TTL of any number, takes a REPLACE without records for
 * a deletion, and says that it deleted what is in another zone. Undefined: the server shall judge.
 */
export const validatePowerdnsChange = (zone: string, change: RecordChange): string | undefined => {
  if (!isAtOrBelow(toOwnerName(change), zone)) return `the name is not in the zone ${zone}`
  if (change.kind === 'delete') return undefined
  const { ttl, values } = change.set
  // RFC 2181 section 8: 31 bits.
  if (!Number.isInteger(ttl) || ttl < 0 || ttl > 2 ** 31 - 1) return 'the TTL is not between 0 and 2147483647 seconds'
  return values.length === 0 ? 'there is no value' : undefined
}

/** The server rejects these types with a second record, disabled or not. */
const singletons: ReadonlySet<string> = new Set(['CNAME', 'DNAME', 'SOA'])

/**
 * A change as the API wants it. REPLACE and DELETE take every record of the RRset, so that disabled ones, which somebody
 * laid aside, are handed back. Comments stay where the change does not mention them; a deletion takes them along.
 */
export const toRrset = (change: RecordChange, unserved: UnservedRecords | undefined) => {
  const { name, type } = change.kind === 'upsert' ? change.set : change
  const values = change.kind === 'upsert' ? change.set.values : []
  const disabled = singletons.has(type) ? [] : (unserved?.values ?? []).filter(value => !values.includes(value))
  const records = [
    ...values.map(content => ({ content, disabled: false })),
    ...disabled.map(content => ({ content, disabled: true })),
  ]
  const rrset = { name: `${name}.`, type }
  if (records.length === 0) return { ...rrset, changetype: 'DELETE' }
  const ttl = change.kind === 'upsert' ? change.set.ttl : unserved?.ttl
  return { ...rrset, changetype: 'REPLACE', ttl, records }
}

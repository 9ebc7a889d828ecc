import { isAtOrBelow, type RecordChange } from '../../domain/rrset.ts'
import { toTypeCode } from '../../wire/message.ts'
import { encodeName } from '../../wire/name.ts'
import { encodeData } from '../../wire/rdata.ts'

/** Why no server is asked for `change`; undefined: it can be put on the wire. */
export const validateUpdate = (zone: string, change: RecordChange): string | undefined => {
  const { name, type } = change.kind === 'upsert' ? change.set : change
  if (!isAtOrBelow(name, zone)) return 'the name is not in this zone'
  if (!encodeName(name)) return 'the name is not a domain name'
  if (toTypeCode(type) === undefined) return `${type} is not a record type of a zone`
  // RFC 2136 sections 3.4.2.2 to 3.4.2.4: of these some changes are ignored silently.
  if (type === 'SOA' || (type === 'NS' && name === zone))
    return `the server keeps the ${type} records of the zone itself`
  if (change.kind === 'delete') return undefined
  const { ttl, values } = change.set
  // RFC 2181 section 8: 31 bits.
  if (!Number.isInteger(ttl) || ttl < 0 || ttl > 2 ** 31 - 1) return 'the TTL is not between 0 and 2147483647 seconds'
  if (values.length === 0) return 'there is no value'
  if (values.some(value => encodeData(type, value) === undefined)) return `a value is not valid for the type ${type}`
  if (type === 'CNAME' && values.length > 1) return 'a name has one CNAME at most'
  return undefined
}

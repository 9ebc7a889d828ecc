import { isAtOrBelow, type RecordChange } from '../../domain/rrset.ts'
import { isName, isRecordValue } from '../../rdata.ts'

/** Why the local server cannot hold `change`; undefined if it can. */
export const validateChange = (zone: string, change: RecordChange): string | undefined => {
  if (change.kind === 'delete') return undefined
  const { name, type, ttl, values } = change.set
  if (!isAtOrBelow(name, zone) || !isName(name)) return 'the name is not a name of this zone'
  if (type === 'NS' || type === 'SOA')
    return 'the local DNS server creates NS and SOA records itself and has no delegations'
  // RFC 2181 section 8: 31 bits.
  if (!Number.isInteger(ttl) || ttl < 0 || ttl > 2 ** 31 - 1) return 'the TTL is not between 0 and 2147483647 seconds'
  if (values.length === 0) return 'there is no value'
  if (values.some(value => !isRecordValue(type, value)))
    return `the local DNS server does not support this ${type} record`
  if (type === 'CNAME' && values.length > 1) return 'a name can have only one CNAME'
  return undefined
}

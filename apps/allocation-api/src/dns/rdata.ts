import { isIPv4, isIPv6 } from 'node:net'
import type { RecordChange } from './domain/rrset.ts'
import { isAtOrBelow } from './domain/rrset.ts'

/** The record types this server speaks, parsed from presentation format (RFC 1035 section 5.1). */
export type RecordData =
  | { readonly type: 'A' | 'AAAA' | 'CNAME' | 'NS'; readonly data: string }
  | { readonly type: 'MX'; readonly data: { preference: number; exchange: string } }
  | { readonly type: 'TXT'; readonly data: Buffer[] }
  | { readonly type: 'SOA'; readonly data: SoaData }

interface SoaData {
  mname: string
  rname: string
  serial: number
  refresh: number
  retry: number
  expire: number
  minimum: number
}

// Labels of 1 to 63 octets, names of 253 characters at most (RFC 1035 section 2.3.4). Escapes are not supported.
const namePattern = /^(?=.{1,253}$)(?:[a-z0-9_*-]{1,63}\.)*[a-z0-9_*-]{1,63}$/i
const isName = (text: string): boolean => namePattern.test(text.replace(/\.$/, ''))

// `\DDD` is an octet in decimal, `\X` the character X itself.
const quotedString = /"(?:[^"\\]|\\(?:[01]\d\d|2[0-4]\d|25[0-5]|\D))*"/.source
const quotedStrings = new RegExp(`^${quotedString}(?: +${quotedString})*$`)
const printableAscii = /^[\x20-\x7e]*$/

const textOf = (value: string): Buffer[] | undefined => {
  if (!quotedStrings.test(value) || !printableAscii.test(value)) return undefined
  const strings = (value.match(new RegExp(quotedString, 'g')) ?? []).map(quoted =>
    Buffer.from(
      quoted
        .slice(1, -1)
        .replace(/\\(\d{3}|.)/g, (_, escaped) =>
          escaped.length === 3 ? String.fromCharCode(Number(escaped)) : escaped,
        ),
      'latin1',
    ),
  )
  return strings.every(octets => octets.length <= 255) ? strings : undefined
}

const soaOf = (value: string): SoaData | undefined => {
  const [mname = '', rname = '', ...numbers] = value.split(' ')
  const [serial, refresh, retry, expire, minimum] = numbers.map(Number)
  if (serial === undefined || refresh === undefined || retry === undefined) return undefined
  if (expire === undefined || minimum === undefined) return undefined
  return { mname, rname, serial, refresh, retry, expire, minimum }
}

/** `undefined`: not of a type that this server speaks, or not a value of that type. */
export const parseRecordData = (type: string, value: string): RecordData | undefined => {
  switch (type) {
    case 'A':
      return isIPv4(value) ? { type, data: value } : undefined
    case 'AAAA':
      return isIPv6(value) && !value.includes('%') ? { type, data: value } : undefined
    case 'CNAME':
    case 'NS':
      return isName(value) ? { type, data: value } : undefined
    case 'MX': {
      const [, preference = '', exchange = ''] = /^(\d{1,5}) +(\S+)$/.exec(value) ?? []
      if (!isName(exchange) || Number(preference) > 65_535) return undefined
      return { type, data: { preference: Number(preference), exchange } }
    }
    case 'TXT': {
      const data = textOf(value)
      return data && { type, data }
    }
    case 'SOA': {
      const data = soaOf(value)
      return data && { type, data }
    }
    default:
      return undefined
  }
}

/** Why this server cannot hold what `change` asks for; `undefined` when it can. */
export const validateChange = (zone: string, change: RecordChange): string | undefined => {
  if (change.kind === 'delete') return undefined
  const { name, type, ttl, values } = change.set
  if (!isAtOrBelow(name, zone) || !isName(name)) return 'the name is not a name of this zone'
  if (type === 'NS' || type === 'SOA') return 'the local DNS server answers NS and SOA by itself and delegates nothing'
  // RFC 2181 section 8: 31 bits.
  if (!Number.isInteger(ttl) || ttl < 0 || ttl > 2 ** 31 - 1) return 'the TTL is not between 0 and 2147483647 seconds'
  if (values.length === 0) return 'there is no value'
  if (values.some(value => !parseRecordData(type, value)))
    return `the local DNS server cannot serve such a ${type} record`
  if (type === 'CNAME' && values.length > 1) return 'a name has one CNAME at most'
  return undefined
}

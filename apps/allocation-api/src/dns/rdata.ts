import { isIPv4, isIPv6 } from 'node:net'
import { encodeRdata } from './wire/rdata.ts'

/*
 * The record values that the local server and Dynadot accept: a subset of the presentation format (RFC 1035 section
 * 5.1). Names are absolute with or without their trailing dot.
 */

// Labels of 1 to 63 octets, names of 253 characters at most (RFC 1035 section 2.3.4). Escapes are not supported.
const NAME = /^(?=.{1,253}$)(?:[a-z0-9_*-]{1,63}\.)*[a-z0-9_*-]{1,63}$/i

export const isName = (text: string): boolean => NAME.test(text.replace(/\.$/, ''))

const toAbsolute = (name: string): string => (name.endsWith('.') ? name : `${name}.`)

// `\DDD` is an octet in decimal, `\X` the character X.
const QUOTED_STRING = /"(?:[^"\\]|\\(?:[01]\d\d|2[0-4]\d|25[0-5]|\D))*"/.source
const QUOTED_STRINGS = new RegExp(`^${QUOTED_STRING}(?: +${QUOTED_STRING})*$`)
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/

/** `value` on the wire. Undefined: not a value of this type, or a type that is not supported. */
export const encodeRecordValue = (type: string, value: string): Buffer | undefined => {
  switch (type) {
    case 'A':
      return isIPv4(value) ? encodeRdata(type, value) : undefined
    case 'AAAA':
      return isIPv6(value) ? encodeRdata(type, value) : undefined
    case 'CNAME':
    case 'NS':
      return isName(value) ? encodeRdata(type, toAbsolute(value)) : undefined
    case 'MX': {
      const [, preference = '', exchange = ''] = /^(\d{1,5}) +(\S+)$/.exec(value) ?? []
      return isName(exchange) ? encodeRdata(type, `${preference} ${toAbsolute(exchange)}`) : undefined
    }
    case 'TXT':
      return QUOTED_STRINGS.test(value) && PRINTABLE_ASCII.test(value) ? encodeRdata(type, value) : undefined
    case 'SOA':
      return encodeRdata(type, value)
    default:
      return undefined
  }
}

export const isRecordValue = (type: string, value: string): boolean => encodeRecordValue(type, value) !== undefined

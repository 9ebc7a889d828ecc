import { isLoadBalancerAddress, loadBalancerIPv6 } from '@pool/contract'
import { quoteString, quoteStrings, unescapeText } from '../../dns/wire/rdata.ts'
import { quoteInput, toRecordName } from './names.ts'

/** Bytes. */
const MAX_VALUE_SIZE = 2_048

/** What a value of each type that an operator can allow must be. */
const VALUE_FORMS: Readonly<Record<string, string>> = {
  A: 'an IPv4 address that is not loopback, link-local or multicast',
  AAAA: 'an IPv6 address that is not loopback, link-local, multicast or of IPv4',
  CNAME: 'the name of a host',
  TXT: `text of at most ${MAX_VALUE_SIZE} bytes; in quotes, an escape is a backslash with a character or three digits up to 255`,
  MX: 'a preference and the name of a host, such as 10 mail.example',
  SRV: 'priority, weight, port and the name of a host, such as 0 5 443 www.example',
  CAA: 'flags, a tag and a value, such as 0 issue "ca.example"',
  NS: 'the name of a host',
}
export const RECORD_TYPES = Object.keys(VALUE_FORMS)

/** What is wrong with a value that has no normal form, and what to send. */
export const explainValue = (type: string, value: string): string =>
  `${quoteInput(value)} is not a value of ${type} records: send ${VALUE_FORMS[type]}.`

/** A digest in base64url: RFC 8555 section 8.4. */
export const CHALLENGE_VALUE = /^[A-Za-z0-9_-]{43}$/

const QUOTED = /"(?:[^"\\]|\\\d{3}|\\\D)*"/g
const ALL_QUOTED = /^\s*"(?:[^"\\]|\\\d{3}|\\\D)*"(?:\s+"(?:[^"\\]|\\\d{3}|\\\D)*")*\s*$/

/**
 * The octets of a TXT value: of its character-strings, or of the text itself if it is not quoted. Null: an invalid escape, or
 * half of a surrogate pair.
 */
const toTextOctets = (value: string): Buffer | null => {
  if (!ALL_QUOTED.test(value)) return value.isWellFormed() ? Buffer.from(value, 'utf8') : null
  const parts = (value.match(QUOTED) ?? []).map(quoted => unescapeText(quoted.slice(1, -1)))
  return parts.includes(undefined) ? null : Buffer.concat(parts.filter(part => part !== undefined))
}

/**
 * The text of a TXT value in presentation format, for tools that do not quote. What would be another value if it was sent back
 * stays quoted: octets that are not UTF-8, and quotes around all of the text.
 */
export const unquoteText = (value: string): string => {
  const octets = toTextOctets(value)
  const text = octets?.toString('utf8') ?? ''
  const isText = octets?.equals(Buffer.from(text, 'utf8')) && !ALL_QUOTED.test(text)
  return isText ? text : value
}

/** A TXT value in presentation format. */
export const quoteText = (text: string): string => quoteStrings(Buffer.from(text, 'utf8'))

const toHost = (text: string, { allowsRoot = false } = {}): string | null => {
  if (text === '.') return allowsRoot ? '.' : null
  const name = toRecordName(text)
  return name === null || name.startsWith('*') ? null : `${name}.`
}

const isNumber = (text: string, max: number): boolean => /^\d{1,5}$/.test(text) && Number(text) <= max

const toNumbersAndHost = (value: string, count: number): string | null => {
  const words = value.trim().split(/\s+/)
  const numbers = words.slice(0, -1)
  const host = toHost(words.at(-1) ?? '', { allowsRoot: true })
  if (numbers.length !== count || host === null || !numbers.every(number => isNumber(number, 65_535))) return null
  return [...numbers.map(Number), host].join(' ')
}

const toAuthorization = (value: string): string | null => {
  const [, flags = '', tag = '', text = ''] = /^\s*(\d{1,3})\s+([A-Za-z0-9]{1,15})\s+(\S.*?)\s*$/.exec(value) ?? []
  const octets = /^"[^"]*"$|^[^\s"]+$/.test(text) ? unescapeText(text.replace(/^"|"$/g, '')) : undefined
  return octets && octets.length <= MAX_VALUE_SIZE && isNumber(flags, 255)
    ? `${Number(flags)} ${tag.toLowerCase()} ${quoteString(octets)}`
    : null
}

/**
 * The normal form of a value, in presentation format, which every provider returns as it was written; names are absolute. Null:
 * it is not a value of that type.
 */
export const toRecordValue = (
  type: string,
  value: string,
  { acceptsLoopback }: { readonly acceptsLoopback: boolean },
): string | null => {
  switch (type) {
    case 'A':
      return isLoadBalancerAddress(value.trim(), acceptsLoopback) ? value.trim() : null
    case 'AAAA':
      return loadBalancerIPv6.safeParse(value.trim()).data ?? null
    case 'CNAME':
    case 'NS':
      return toHost(value.trim())
    case 'MX':
      return toNumbersAndHost(value, 1)
    case 'SRV':
      return toNumbersAndHost(value, 3)
    case 'CAA':
      return toAuthorization(value)
    case 'TXT': {
      const octets = toTextOctets(value)
      return octets && octets.length <= MAX_VALUE_SIZE ? quoteStrings(octets) : null
    }
    default:
      return null
  }
}

/** A value as tenants see it: a name without its final dot. */
export const toShownValue = (type: string, value: string): string =>
  type === 'TXT' || type === 'CAA' ? value : value.replace(/(?<=[^ ])\.$/, '')

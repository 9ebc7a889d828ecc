import { isIPv4, isIPv6, SocketAddress } from 'node:net'

/* What the records of a message consist of: names, types and RDATA. */

/** A DNS message is malformed (FORMERR). The text does not quote the message. */
export class FormatError extends Error {}

const specials = new Set('.\\"();@$')

/** One octet of a label in presentation format (RFC 1035 section 5.1). */
const escapeOctet = (octet: number): string => {
  const character = String.fromCharCode(octet)
  if (octet <= 0x20 || octet >= 0x7f) return `\\${String(octet).padStart(3, '0')}`
  return specials.has(character) ? `\\${character}` : character
}

/** Decodes `\DDD` (an octet in decimal) and `\X` (the character X). Undefined: an invalid escape, or not ASCII. */
export const unescapeText = (text: string): Buffer | undefined =>
  /^(?:[\x20-\x5b\x5d-\x7e]|\\(?:[01]\d\d|2[0-4]\d|25[0-5]|[\x20-\x2f\x3a-\x7e]))*$/.test(text)
    ? Buffer.from(
        text.replace(/\\(\d{3}|.)/g, (_, code) => (code.length === 3 ? String.fromCharCode(Number(code)) : code)),
        'latin1',
      )
    : undefined

const label = /(?:[^.\\\s]|\\\d{3}|\\\D)+/.source
const labels = new RegExp(label, 'g')
const wholeName = new RegExp(`^(?:${label}\\.)*${label}\\.?$`)

/**
 * A name on the wire, uncompressed and in its original case, with or without a trailing dot.
 * Undefined: not a name (RFC 1035 section 2.3.4: labels of 1 to 63 octets, 255 in all).
 */
export const encodeName = (text: string): Buffer | undefined => {
  if (text === '.') return Buffer.of(0)
  // Longer than the longest name with all octets escaped.
  if (text.length > 1_024 || !wholeName.test(text)) return undefined
  const parts: Buffer[] = []
  for (const part of text.match(labels) ?? []) {
    const octets = unescapeText(part)
    if (!octets || octets.length > 63) return undefined
    parts.push(Buffer.of(octets.length), octets)
  }
  const wire = Buffer.concat([...parts, Buffer.of(0)])
  return wire.length <= 255 ? wire : undefined
}

/** Reads the name at offset `at`, without the trailing dot (the root is empty), and the offset after it. */
export const readName = (message: Buffer, at: number): { name: string; next: number; isCompressed: boolean } => {
  const labelTexts: string[] = []
  let next: number | undefined
  let octets = 1
  for (let here = at; ; ) {
    const length = message[here]
    if (length === undefined) throw new FormatError('a name runs past the end')
    if (length >= 0xc0) {
      const low = message[here + 1]
      // A pointer must point backwards (RFC 1035 section 4.1.4), so pointers cannot form a loop.
      const target = low === undefined ? here : ((length & 0x3f) << 8) | low
      if (target >= here) throw new FormatError('a compression pointer in a name does not point backwards')
      next ??= here + 2
      here = target
    } else if (length > 63) {
      throw new FormatError('a name has a label of an unknown type')
    } else if (length === 0) {
      return { name: labelTexts.join('.'), next: next ?? here + 1, isCompressed: next !== undefined }
    } else {
      octets += length + 1
      if (octets > 255 || here + 1 + length > message.length) throw new FormatError('a name is too long')
      labelTexts.push(Array.from(message.subarray(here + 1, here + 1 + length), escapeOctet).join(''))
      here += 1 + length
    }
  }
}

/** Codes of the types that have a name (IANA, "Resource Record (RR) TYPEs"). */
export const TYPES = {
  A: 1,
  NS: 2,
  MD: 3,
  MF: 4,
  CNAME: 5,
  SOA: 6,
  MB: 7,
  MG: 8,
  MR: 9,
  PTR: 12,
  HINFO: 13,
  MINFO: 14,
  MX: 15,
  TXT: 16,
  RP: 17,
  AFSDB: 18,
  RT: 21,
  PX: 26,
  AAAA: 28,
  LOC: 29,
  SRV: 33,
  NAPTR: 35,
  KX: 36,
  DNAME: 39,
  OPT: 41,
  DS: 43,
  SSHFP: 44,
  RRSIG: 46,
  NSEC: 47,
  DNSKEY: 48,
  NSEC3: 50,
  NSEC3PARAM: 51,
  TLSA: 52,
  SMIMEA: 53,
  CDS: 59,
  CDNSKEY: 60,
  OPENPGPKEY: 61,
  CSYNC: 62,
  ZONEMD: 63,
  SVCB: 64,
  HTTPS: 65,
  SPF: 99,
  TSIG: 250,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
  URI: 256,
  CAA: 257,
} as const

const codes = new Map<string, number>(Object.entries(TYPES))
const mnemonics = new Map(Object.entries(TYPES).map(([name, code]) => [code as number, name]))

/** RFC 3597 section 5: `TYPE` and the number, for a type without a name in this list. */
export const toTypeName = (code: number): string => mnemonics.get(code) ?? `TYPE${code}`

/** Undefined: not a type of zone data (RFC 6895 section 3.1: 128 to 255 are meta-types and QTYPEs, 41 is OPT). */
export const toTypeCode = (name: string): number | undefined => {
  const code = codes.get(name) ?? Number(/^TYPE(\d{1,5})$/.exec(name)?.[1] ?? 0)
  return code === 0 || code === TYPES.OPT || (code >= 128 && code <= 255) || code > 65_535 ? undefined : code
}

/** RFC 1035 section 3.3: a character-string has 255 octets at most. */
const MAX_STRING_LENGTH = 255

/** A character-string in presentation format (RFC 1035 section 5.1): octets that are not printable ASCII become `\DDD`. */
export const quoteString = (octets: Buffer): string => {
  const text = Array.from(octets, octet => {
    if (octet < 0x20 || octet >= 0x7f) return `\\${String(octet).padStart(3, '0')}`
    const character = String.fromCharCode(octet)
    return character === '"' || character === '\\' ? `\\${character}` : character
  })
  return `"${text.join('')}"`
}

/** Splits octets into as many character-strings as necessary. No octets give one empty string. */
export const quoteStrings = (octets: Buffer): string =>
  Array.from({ length: Math.max(1, Math.ceil(octets.length / MAX_STRING_LENGTH)) }, (_, i) =>
    quoteString(octets.subarray(i * MAX_STRING_LENGTH, (i + 1) * MAX_STRING_LENGTH)),
  ).join(' ')

/**
 * RDATA on the wire and in presentation format. All types that RFC 3597 section 4 allows a server to compress must be
 * listed, because a compressed name is only valid within its message. Any other type is written as `\# length hex`.
 */
type Field = 'ipv4' | 'ipv6' | 'name' | 'u8' | 'u16' | 'u32' | 'string' | 'strings' | 'tag' | 'text' | 'hex'

const layouts: Readonly<Record<string, readonly Field[]>> = {
  A: ['ipv4'],
  AAAA: ['ipv6'],
  NS: ['name'],
  MD: ['name'],
  MF: ['name'],
  CNAME: ['name'],
  MB: ['name'],
  MG: ['name'],
  MR: ['name'],
  PTR: ['name'],
  DNAME: ['name'],
  SOA: ['name', 'name', 'u32', 'u32', 'u32', 'u32', 'u32'],
  MX: ['u16', 'name'],
  AFSDB: ['u16', 'name'],
  RT: ['u16', 'name'],
  KX: ['u16', 'name'],
  PX: ['u16', 'name', 'name'],
  RP: ['name', 'name'],
  MINFO: ['name', 'name'],
  SRV: ['u16', 'u16', 'u16', 'name'],
  NAPTR: ['u16', 'u16', 'string', 'string', 'string', 'name'],
  HINFO: ['string', 'string'],
  TXT: ['strings'],
  SPF: ['strings'],
  CAA: ['u8', 'tag', 'text'],
  DS: ['u16', 'u8', 'u8', 'hex'],
  SSHFP: ['u8', 'u8', 'hex'],
  TLSA: ['u8', 'u8', 'u8', 'hex'],
}

const ipv6Text = (octets: Buffer): string => {
  const groups = Array.from({ length: 8 }, (_, i) => octets.readUInt16BE(2 * i).toString(16))
  return new SocketAddress({ family: 'ipv6', address: groups.join(':') }).address
}

const ipv6Octets = (text: string): Buffer => {
  const plain = text.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...parts) => {
    const [a = 0, b = 0, c = 0, d = 0] = parts.slice(0, 4).map(Number)
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
  })
  const [head = [], tail = []] = plain.split('::').map(half => half.split(':').filter(group => group !== ''))
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => '0')
  return Buffer.from([...head, ...zeros, ...tail].map(group => group.padStart(4, '0')).join(''), 'hex')
}

const printField = (field: Field, message: Buffer, at: number, end: number): { text: string; next: number } => {
  const take = (octets: number): Buffer => {
    if (at + octets > end) throw new FormatError('the RDATA of a record is truncated')
    return message.subarray(at, at + octets)
  }
  const counted = (): Buffer => message.subarray(at + 1, at + take(1 + (take(1)[0] ?? 0)).length)
  switch (field) {
    case 'ipv4':
      return { text: take(4).join('.'), next: at + 4 }
    case 'ipv6':
      return { text: ipv6Text(take(16)), next: at + 16 }
    case 'name': {
      const { name, next } = readName(message, at)
      if (next > end) throw new FormatError('the RDATA of a record is truncated')
      return { text: `${name}.`, next }
    }
    case 'u8':
      return { text: String(take(1).readUInt8()), next: at + 1 }
    case 'u16':
      return { text: String(take(2).readUInt16BE()), next: at + 2 }
    case 'u32':
      return { text: String(take(4).readUInt32BE()), next: at + 4 }
    case 'string':
      return { text: quoteString(counted()), next: at + 1 + counted().length }
    case 'strings': {
      const texts: string[] = []
      let here = at
      while (here < end) {
        const { text, next } = printField('string', message, here, end)
        texts.push(text)
        here = next
      }
      return { text: texts.join(' '), next: here }
    }
    case 'tag':
      return { text: counted().toString('latin1'), next: at + 1 + counted().length }
    case 'text':
      return { text: quoteString(message.subarray(at, end)), next: end }
    case 'hex':
      return { text: message.subarray(at, end).toString('hex').toUpperCase(), next: end }
  }
}

const toGenericText = (octets: Buffer): string =>
  octets.length === 0 ? '\\# 0' : `\\# ${octets.length} ${octets.toString('hex').toUpperCase()}`

/** The RDATA at offset `at`, of type code `type`, in presentation format. */
export const printRdata = (type: number, message: Buffer, at: number, length: number): string => {
  const layout = layouts[toTypeName(type)]
  const end = at + length
  if (!layout) return toGenericText(message.subarray(at, end))
  let here = at
  const texts = layout.map(field => {
    const { text, next } = printField(field, message, here, end)
    here = next
    return text
  })
  if (here !== end) throw new FormatError('the RDATA of a record is too long')
  return texts.join(' ')
}

const uint = (text: string, octets: 1 | 2 | 4): Buffer | undefined => {
  if (!/^\d{1,10}$/.test(text) || Number(text) >= 256 ** octets) return undefined
  const out = Buffer.alloc(octets)
  out.writeUIntBE(Number(text), 0, octets)
  return out
}

const hex = (text: string): Buffer | undefined =>
  /^(?:[0-9a-f]{2})*$/i.test(text) ? Buffer.from(text, 'hex') : undefined

const counted = (octets: Buffer | undefined): Buffer | undefined =>
  octets && octets.length <= 255 ? Buffer.concat([Buffer.of(octets.length), octets]) : undefined

const inQuotes = /^"(?:[^"\\]|\\.)*"$/
const bare = (token: string): string => (inQuotes.test(token) ? token.slice(1, -1) : token)

const encodeField = (field: Field, token: string): Buffer | undefined => {
  switch (field) {
    case 'ipv4':
      return isIPv4(token) ? Buffer.from(token.split('.').map(Number)) : undefined
    case 'ipv6':
      return isIPv6(token) && !token.includes('%') ? ipv6Octets(token) : undefined
    case 'name':
      // A relative name needs the $ORIGIN of a zone file, which does not exist here.
      return token.endsWith('.') ? encodeName(token) : undefined
    case 'u8':
      return uint(token, 1)
    case 'u16':
      return uint(token, 2)
    case 'u32':
      return uint(token, 4)
    case 'string':
    case 'strings':
      return counted(unescapeText(bare(token)))
    case 'tag':
      return /^[a-z0-9]+$/i.test(token) ? counted(Buffer.from(token, 'latin1')) : undefined
    case 'text':
      return unescapeText(bare(token))
    case 'hex':
      return hex(token)
  }
}

const tokenPattern = /"(?:[^"\\]|\\.)*"|(?:[^\s"\\]|\\.)+/g

/** The tokens of a value; undefined: it is not valid, for example because of an unterminated quote. */
const parseTokens = (value: string): string[] | undefined =>
  value.replace(tokenPattern, '').trim() === '' ? (value.match(tokenPattern) ?? []) : undefined

/** `value` on the wire, with uncompressed names. Undefined: not a value of that type, or an unknown type. */
export const encodeRdata = (type: string, value: string): Buffer | undefined => {
  const tokens = parseTokens(value)
  const code = toTypeCode(type)
  if (!tokens || code === undefined) return undefined
  if (tokens[0] === '\\#') {
    const data = hex(tokens.slice(2).join(''))
    return data && tokens[1] === String(data.length) && data.length <= 65_535 ? data : undefined
  }
  const layout = layouts[type]
  const last = layout?.at(-1)
  if (!layout || !last || tokens.length < layout.length) return undefined
  const rest = tokens.splice(layout.length - 1)
  const closing = last === 'strings' ? rest : last === 'hex' ? [rest.join('')] : rest
  if (last !== 'strings' && closing.length !== 1) return undefined
  const parts = [
    ...tokens.map((token, i) => encodeField(layout[i] ?? last, token)),
    ...closing.map(token => encodeField(last, token)),
  ]
  const data = Buffer.concat(parts.filter(part => part !== undefined))
  return parts.includes(undefined) || data.length > 65_535 ? undefined : data
}

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
      return exchange === '.' || isName(exchange)
        ? encodeRdata(type, `${preference} ${toAbsolute(exchange)}`)
        : undefined
    }
    case 'SRV': {
      const [, numbers = '', target = ''] = /^(\d{1,5} \d{1,5} \d{1,5}) (\S+)$/.exec(value) ?? []
      return target === '.' || isName(target) ? encodeRdata(type, `${numbers} ${toAbsolute(target)}`) : undefined
    }
    case 'CAA':
      return PRINTABLE_ASCII.test(value) ? encodeRdata(type, value) : undefined
    case 'DS':
      return /^\d+ \d+ \d+ [0-9A-F]+$/.test(value) ? encodeRdata(type, value) : undefined
    case 'TXT':
      return QUOTED_STRINGS.test(value) && PRINTABLE_ASCII.test(value) ? encodeRdata(type, value) : undefined
    case 'SOA':
      return encodeRdata(type, value)
    default:
      return undefined
  }
}

export const isRecordValue = (type: string, value: string): boolean => encodeRecordValue(type, value) !== undefined

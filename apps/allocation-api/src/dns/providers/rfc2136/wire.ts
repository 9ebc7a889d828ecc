import { FormatError } from './errors.ts'
import { readName } from './name.ts'

export const headerSize = 12
export const largestMessage = 65_535
export const classes = { IN: 1, NONE: 254, ANY: 255 } as const
export const opcodes = { QUERY: 0, UPDATE: 5 } as const
export const flags = { response: 0x8000, truncated: 0x0200 } as const

/** Codes of the types that have a name (IANA, "Resource Record (RR) TYPEs"). */
export const types = {
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
  AXFR: 252,
  ANY: 255,
  URI: 256,
  CAA: 257,
} as const

const codes = new Map<string, number>(Object.entries(types))
const mnemonics = new Map(Object.entries(types).map(([name, code]) => [code as number, name]))

/** RFC 3597 section 5: `TYPE` and the number, for a type that has no name here. */
export const typeName = (code: number): string => mnemonics.get(code) ?? `TYPE${code}`

/** Undefined: no type, or not one that a zone can hold (RFC 6895 section 3.1: 128 to 255 are for questions, 41 is OPT). */
export const typeCode = (name: string): number | undefined => {
  const code = codes.get(name) ?? Number(/^TYPE(\d{1,5})$/.exec(name)?.[1] ?? 0)
  return code === 0 || code === types.OPT || (code >= 128 && code <= 255) || code > 65_535 ? undefined : code
}

export interface WireRecord {
  /** As readName gives it. */
  readonly name: string
  readonly type: number
  readonly class: number
  /** Seconds. */
  readonly ttl: number
  readonly at: number
  readonly dataAt: number
  readonly dataLength: number
}

export interface Message {
  readonly id: number
  readonly isResponse: boolean
  readonly isTruncated: boolean
  readonly opcode: number
  readonly rcode: number
  readonly questions: readonly { readonly name: string; readonly type: number; readonly class: number }[]
  readonly answers: readonly WireRecord[]
  readonly authority: readonly WireRecord[]
  readonly additional: readonly WireRecord[]
}

/** RFC 1035 section 4. Throws MessageFault at what is not whole. */
export const parseMessage = (message: Buffer): Message => {
  if (message.length < headerSize) throw new FormatError('it is shorter than a header')
  const word = message.readUInt16BE(2)
  let at = headerSize
  const need = (octets: number) => {
    if (at + octets > message.length) throw new FormatError('a record runs past the end')
  }
  const list = <T>(countAt: number, read: () => T): T[] =>
    Array.from({ length: message.readUInt16BE(countAt) }, () => read())

  const question = () => {
    const { name, next } = readName(message, at)
    at = next
    need(4)
    at += 4
    return { name, type: message.readUInt16BE(next), class: message.readUInt16BE(next + 2) }
  }
  const record = (): WireRecord => {
    const start = at
    const { name, next } = readName(message, at)
    at = next
    need(10)
    const ttl = message.readUInt32BE(next + 4)
    const dataLength = message.readUInt16BE(next + 8)
    at += 10
    need(dataLength)
    const dataAt = at
    at += dataLength
    return {
      name,
      type: message.readUInt16BE(next),
      class: message.readUInt16BE(next + 2),
      // RFC 2181 section 8: with the highest bit set it is 0.
      ttl: ttl > 0x7fffffff ? 0 : ttl,
      at: start,
      dataAt,
      dataLength,
    }
  }

  const parsed = {
    id: message.readUInt16BE(0),
    isResponse: (word & flags.response) !== 0,
    isTruncated: (word & flags.truncated) !== 0,
    opcode: (word >> 11) & 0xf,
    rcode: word & 0xf,
    questions: list(4, question),
    answers: list(6, record),
    authority: list(8, record),
    additional: list(10, record),
  }
  if (at !== message.length) throw new FormatError('something follows its last record')
  return parsed
}

import { encodeName, FormatError, readName } from './rdata.ts'

export const HEADER_SIZE = 12
export const MAX_MESSAGE_SIZE = 65_535
export const CLASSES = { IN: 1, NONE: 254, ANY: 255 } as const
export const OPCODES = { QUERY: 0, UPDATE: 5 } as const
export const FLAGS = { response: 0x8000, authoritative: 0x0400, truncated: 0x0200 } as const

/** RFC 1035 section 4.1.1 and RFC 2136 section 2.2. BADVERS (RFC 6891 section 9) takes more bits than the header has. */
export const RCODES = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
  YXDOMAIN: 6,
  YXRRSET: 7,
  NXRRSET: 8,
  NOTAUTH: 9,
  NOTZONE: 10,
  BADVERS: 16,
} as const

const rcodeNames = new Map<number, string>(Object.entries(RCODES).map(([name, code]) => [code, name]))

/** `RCODE` and the number, for a code without a name in this list. */
export const toRcodeName = (code: number): string => rcodeNames.get(code) ?? `RCODE${code}`

export interface WireRecord {
  /** As `readName` returns it. */
  readonly name: string
  readonly type: number
  readonly class: number
  /** Seconds. */
  readonly ttl: number
  /** Offset of the record in the message. */
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

/** RFC 1035 section 4. Throws a `FormatError` if the message is incomplete, or longer than its records. */
export const parseMessage = (message: Buffer, { allowTrailing = false } = {}): Message => {
  if (message.length < HEADER_SIZE) throw new FormatError('it is shorter than a header')
  const word = message.readUInt16BE(2)
  let at = HEADER_SIZE
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
      // RFC 2181 section 8: a TTL with the most significant bit set is treated as 0.
      ttl: ttl > 0x7fffffff ? 0 : ttl,
      at: start,
      dataAt,
      dataLength,
    }
  }

  const parsed = {
    id: message.readUInt16BE(0),
    isResponse: (word & FLAGS.response) !== 0,
    isTruncated: (word & FLAGS.truncated) !== 0,
    opcode: (word >> 11) & 0xf,
    rcode: word & 0xf,
    questions: list(4, question),
    answers: list(6, record),
    authority: list(8, record),
    additional: list(10, record),
  }
  if (at !== message.length && !allowTrailing) throw new FormatError('it continues after its last record')
  return parsed
}

/** `flags` is the whole second word: QR, opcode, flags, RCODE. `counts` are the sizes of the four sections. */
export const encodeHeader = (id: number, flags: number, counts: readonly number[]): Buffer => {
  const header = Buffer.alloc(HEADER_SIZE)
  header.writeUInt16BE(id, 0)
  header.writeUInt16BE(flags, 2)
  for (const [i, count] of counts.entries()) header.writeUInt16BE(count, 4 + 2 * i)
  return header
}

/** For a validated name: an invalid one is a bug in the caller. */
export const encodeValidName = (text: string): Buffer => {
  const name = encodeName(text)
  if (!name) throw new TypeError('not a domain name')
  return name
}

/** In class IN. */
export const encodeQuestion = (name: string, type: number): Buffer => {
  const rest = Buffer.alloc(4)
  rest.writeUInt16BE(type, 0)
  rest.writeUInt16BE(CLASSES.IN, 2)
  return Buffer.concat([encodeValidName(name), rest])
}

export interface RecordFields {
  /** Encoded. */
  readonly name: Buffer
  readonly type: number
  readonly class: number
  /** Seconds. */
  readonly ttl: number
  readonly data: Buffer
}

export const encodeRecord = ({ name, type, class: recordClass, ttl, data }: RecordFields): Buffer => {
  const fixed = Buffer.alloc(10)
  fixed.writeUInt16BE(type, 0)
  fixed.writeUInt16BE(recordClass, 2)
  fixed.writeUInt32BE(ttl, 4)
  fixed.writeUInt16BE(data.length, 8)
  return Buffer.concat([name, fixed, data])
}

/** RFC 1035 section 4.2.2: over TCP, a message is prefixed with its length in two octets. */
export const frameMessage = (message: Buffer): Buffer => {
  if (message.length > MAX_MESSAGE_SIZE) throw new RangeError('a DNS message has at most 65535 octets')
  const length = Buffer.alloc(2)
  length.writeUInt16BE(message.length)
  return Buffer.concat([length, message])
}

/** The first message of `octets` and the octets after it; undefined: the message is not complete yet. */
export const unframeMessage = (octets: Buffer): { readonly message: Buffer; readonly rest: Buffer } | undefined => {
  if (octets.length < 2) return undefined
  const end = 2 + octets.readUInt16BE(0)
  return octets.length < end ? undefined : { message: octets.subarray(2, end), rest: octets.subarray(end) }
}

import { decode, encode } from 'dns-packet'
import type { RecordSet } from '../../domain/rrset.ts'
import { parseRecordData } from '../../rdata.ts'

const rcodes = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5, BADVERS: 16 } as const

export interface Response {
  readonly rcode: keyof typeof rcodes
  readonly answers: readonly RecordSet[]
  readonly authority: readonly RecordSet[]
}

interface QuestionSection {
  /** Lower case, without the trailing dot; an octet that no host name has is escaped (RFC 4343 section 2.1). */
  readonly name: string
  /** As it came: it goes back octet for octet, so that a resolver's mixed case (0x20) is kept. */
  readonly octets: Buffer
}

export interface Query {
  readonly id: number
  /** The opcode and the bits RD and CD, in place: all that a response copies from the query's flags. */
  readonly echoedFlags: number
  readonly question: QuestionSection | undefined
  readonly content:
    | { readonly kind: 'fault'; readonly rcode: 'FORMERR' | 'NOTIMP' }
    | { readonly kind: 'question'; readonly name: string; readonly type: string; readonly class: string }
  /** The OPT record of EDNS(0), RFC 6891. */
  readonly edns: { readonly udpSize: number; readonly version: number; readonly dnssecOk: boolean } | undefined
}

const headerSize = 12
const plainUdpSize = 512
/** Fits an Ethernet frame over IPv6 without fragments (DNS flag day 2020). */
const largestUdpSize = 1232
const flags = { response: 0x8000, authoritative: 0x0400, truncated: 0x0200 }
const echoed = 0x7910

const escaped = (octet: number): string => {
  const character = String.fromCharCode(octet)
  if (character === '\\') return '\\\\'
  return octet > 0x20 && octet < 0x7f && character !== '.' ? character : `\\${String(octet).padStart(3, '0')}`
}

/** Read here and not by the library, which takes a name for UTF-8 and a dot inside a label for two labels. */
const readQuestion = (message: Buffer): QuestionSection | undefined => {
  const labels: string[] = []
  let at = headerSize
  for (let length = message[at++]; length !== 0; length = message[at++]) {
    // A pointer has nothing before it to point to; 63 is the longest label (RFC 1035 section 3.1).
    if (length === undefined || length > 63 || at + length > message.length) return undefined
    labels.push(Array.from(message.subarray(at, at + length), escaped).join(''))
    at += length
  }
  if (at - headerSize > 255 || at + 4 > message.length) return undefined
  return { name: labels.join('.').toLowerCase(), octets: Buffer.from(message.subarray(headerSize, at + 4)) }
}

/** `undefined`: not to be answered at all, being shorter than a header or itself a response. */
export const parseQuery = (message: Buffer): Query | undefined => {
  if (message.length < headerSize) return undefined
  const word = message.readUInt16BE(2)
  if (word & flags.response) return undefined

  const base = { id: message.readUInt16BE(0), echoedFlags: word & echoed, edns: undefined }
  const question = message.readUInt16BE(4) === 1 ? readQuestion(message) : undefined
  const fault = (rcode: 'FORMERR' | 'NOTIMP'): Query => ({ ...base, question, content: { kind: 'fault', rcode } })
  if (word & 0x7800) return fault('NOTIMP')
  // A query brings no answers, and beside OPT a signature at most; so a decoder is never set to work on 64 kB of names.
  const foreign = message.readUInt16BE(6) + message.readUInt16BE(8)
  if (!question || foreign > 0 || message.readUInt16BE(10) > 2) return fault('FORMERR')
  try {
    const { questions: [asked] = [], additionals = [] } = decode(message)
    const [opt, secondOpt] = additionals.filter(record => record.type === 'OPT')
    if (!asked || secondOpt) return fault('FORMERR')
    return {
      ...base,
      question,
      content: { kind: 'question', name: question.name, type: asked.type, class: asked.class ?? 'IN' },
      edns: opt && { udpSize: opt.udpPayloadSize, version: opt.ednsVersion, dnssecOk: opt.flag_do },
    }
  } catch {
    return fault('FORMERR')
  }
}

/** Octets of a UDP response to `query` (RFC 6891 section 6.2.3: a size below 512 is read as 512). */
export const udpLimit = (query: Query): number =>
  query.edns ? Math.min(Math.max(query.edns.udpSize, plainUdpSize), largestUdpSize) : plainUdpSize

const pointerToQuestion = Buffer.from([0xc0, headerSize])

const encodeRecords = (query: Query, sets: readonly RecordSet[]): Buffer[] =>
  sets.flatMap(({ name, type, ttl, values }) =>
    values.map(value => {
      const data = parseRecordData(type, value)
      if (!data) throw new TypeError(`a stored ${type} record cannot be put on the wire`)
      // The library compresses nothing: encoded for the root, one octet, the owner is put in its place.
      const isAsked = name === query.question?.name
      const record = encode({ answers: [{ ...data, name: isAsked ? '.' : name, ttl }] }).subarray(headerSize)
      return isAsked ? Buffer.concat([pointerToQuestion, record.subarray(1)]) : record
    }),
  )

/** At most `limit` octets: what does not fit is left out, with TC set, and the client asks again over TCP. */
export const encodeResponse = (query: Query, response: Response, limit: number): Buffer => {
  const rcode = rcodes[response.rcode]
  const answers = encodeRecords(query, response.answers)
  const authority = encodeRecords(query, response.authority)
  const opt = query.edns
    ? [
        encode({
          additionals: [
            {
              type: 'OPT',
              name: '.',
              udpPayloadSize: largestUdpSize,
              extendedRcode: rcode >> 4,
              ednsVersion: 0,
              // RFC 3225 section 3: DO comes back as it came.
              flags: query.edns.dnssecOk ? 0x8000 : 0,
              flag_do: query.edns.dnssecOk,
              options: [],
            },
          ],
        }).subarray(headerSize),
      ]
    : []

  const assemble = (sections: { answers: Buffer[]; authority: Buffer[] }, extraFlags: number): Buffer => {
    const header = Buffer.alloc(headerSize)
    header.writeUInt16BE(query.id, 0)
    header.writeUInt16BE(flags.response | query.echoedFlags | extraFlags | (rcode & 0xf), 2)
    const counts = [query.question ? 1 : 0, sections.answers.length, sections.authority.length, opt.length]
    for (const [i, count] of counts.entries()) header.writeUInt16BE(count, 4 + 2 * i)
    const question = query.question ? [query.question.octets] : []
    return Buffer.concat([header, ...question, ...sections.answers, ...sections.authority, ...opt])
  }

  const isAuthoritative = response.rcode === 'NOERROR' || response.rcode === 'NXDOMAIN'
  const aa = isAuthoritative ? flags.authoritative : 0
  const size = [...answers, ...authority].reduce((sum, octets) => sum + octets.length, 0)
  const rest = headerSize + (query.question?.octets.length ?? 0) + (opt[0]?.length ?? 0)
  return rest + size <= limit
    ? assemble({ answers, authority }, aa)
    : assemble({ answers: [], authority: [] }, aa | flags.truncated)
}

import { withTimeout } from '@pool/runtime/database/time'
import { isAtOrBelow, type RecordSet } from '../../domain/rrset.ts'
import {
  CLASSES,
  encodeHeader,
  encodeRecord,
  encodeValidName,
  FLAGS,
  HEADER_SIZE,
  MAX_MESSAGE_SIZE,
  type Message,
  parseMessage,
  RCODES,
  type WireRecord,
} from '../../wire/message.ts'
import { encodeRecordValue, FormatError, readName, TYPES, toTypeCode, toTypeName } from '../../wire/rdata.ts'
import { resolve, type ZoneView } from './domain/resolve.ts'

interface Response {
  readonly rcode: 'NOERROR' | 'FORMERR' | 'SERVFAIL' | 'NXDOMAIN' | 'NOTIMP' | 'REFUSED' | 'BADVERS'
  readonly answers: readonly RecordSet[]
  readonly authority: readonly RecordSet[]
  readonly isReferral?: true
}

interface QuestionSection {
  /** Lower case, without the trailing dot; special octets are escaped (RFC 1035 section 5.1). */
  readonly name: string
  /** As received: the response repeats it octet for octet, so a resolver's mixed case (0x20) is preserved. */
  readonly octets: Buffer
}

/** The OPT record of EDNS(0), RFC 6891. */
interface Edns {
  readonly udpSize: number
  readonly version: number
  readonly isDnssecOk: boolean
}

interface Query {
  readonly id: number
  /** The opcode and the bits RD and CD, in place: the flags that a response copies from the query. */
  readonly echoedFlags: number
  readonly question: QuestionSection | undefined
  readonly content:
    | { readonly kind: 'error'; readonly rcode: 'FORMERR' | 'NOTIMP' }
    | { readonly kind: 'question'; readonly name: string; readonly type: string; readonly isClassIn: boolean }
  readonly edns: Edns | undefined
}

const MIN_UDP_SIZE = 512
/** Fits an Ethernet frame over IPv6 without fragments (DNS flag day 2020). */
const MAX_UDP_SIZE = 1232
const ECHOED_FLAGS = 0x7910
const OPCODE_BITS = 0x7800
const DNSSEC_OK = 0x8000

/** Undefined: not a question. A compressed name is not accepted: there is no earlier name that it could point to. */
const readQuestion = (message: Buffer): QuestionSection | undefined => {
  try {
    const { name, next, isCompressed } = readName(message, HEADER_SIZE)
    if (isCompressed || next + 4 > message.length) return undefined
    return { name: name.toLowerCase(), octets: Buffer.from(message.subarray(HEADER_SIZE, next + 4)) }
  } catch (error) {
    if (error instanceof FormatError) return undefined
    throw error
  }
}

/** RFC 6891 section 6.1.2: each option has a code, a length and that number of octets. */
const hasValidOptions = (message: Buffer, { dataAt, dataLength }: WireRecord): boolean => {
  const end = dataAt + dataLength
  let at = dataAt
  while (at + 4 <= end) at += 4 + message.readUInt16BE(at + 2)
  return at === end
}

const toEdns = (message: Buffer, opt: WireRecord): Edns => {
  // The TTL of an OPT record holds flags (RFC 6891 section 6.1.3), so the parsed TTL is not usable.
  const flags = message.readUInt32BE(opt.dataAt - 6)
  return { udpSize: opt.class, version: (flags >> 16) & 0xff, isDnssecOk: (flags & DNSSEC_OK) !== 0 }
}

const tryParse = (message: Buffer): Message | undefined => {
  try {
    return parseMessage(message, { allowTrailing: true })
  } catch (error) {
    if (error instanceof FormatError) return undefined
    throw error
  }
}

/** `undefined`: no response at all, because the message is shorter than a header or is itself a response. */
const parseQuery = (message: Buffer): Query | undefined => {
  if (message.length < HEADER_SIZE) return undefined
  const word = message.readUInt16BE(2)
  if (word & FLAGS.response) return undefined

  const base = { id: message.readUInt16BE(0), echoedFlags: word & ECHOED_FLAGS, edns: undefined }
  const question = message.readUInt16BE(4) === 1 ? readQuestion(message) : undefined
  const reject = (rcode: 'FORMERR' | 'NOTIMP'): Query => ({ ...base, question, content: { kind: 'error', rcode } })
  if (word & OPCODE_BITS) return reject('NOTIMP')
  // A query has no answers, and at most OPT and a signature. This check spares the parser 64 kB of records.
  const answersAndAuthority = message.readUInt16BE(6) + message.readUInt16BE(8)
  if (!question || answersAndAuthority > 0 || message.readUInt16BE(10) > 2) return reject('FORMERR')
  const parsed = tryParse(message)
  const [firstQuestion] = parsed?.questions ?? []
  const [opt, secondOpt] = parsed?.additional.filter(({ type }) => type === TYPES.OPT) ?? []
  if (!firstQuestion || secondOpt || (opt && !hasValidOptions(message, opt))) return reject('FORMERR')
  return {
    ...base,
    question,
    content: {
      kind: 'question',
      name: question.name,
      type: toTypeName(firstQuestion.type),
      isClassIn: firstQuestion.class === CLASSES.IN,
    },
    edns: opt && toEdns(message, opt),
  }
}

/** Octets of a UDP response to `query` (RFC 6891 section 6.2.3: a size below 512 is read as 512). */
const toUdpLimit = (query: Query): number =>
  query.edns ? Math.min(Math.max(query.edns.udpSize, MIN_UDP_SIZE), MAX_UDP_SIZE) : MIN_UDP_SIZE

const POINTER_TO_QUESTION = Buffer.from([0xc0, HEADER_SIZE])

const encodeRecords = (query: Query, sets: readonly RecordSet[]): Buffer[] =>
  sets.flatMap(({ name: owner, type: typeName, ttl, values }) => {
    const name = owner === query.question?.name ? POINTER_TO_QUESTION : encodeValidName(owner)
    return values.map(value => {
      const type = toTypeCode(typeName)
      const data = encodeRecordValue(typeName, value)
      if (type === undefined || !data) throw new TypeError(`a stored ${typeName} record cannot be encoded`)
      return encodeRecord({ name, type, class: CLASSES.IN, ttl, data })
    })
  })

const encodeOpt = (rcode: number, { isDnssecOk }: Edns): Buffer =>
  encodeRecord({
    name: encodeValidName('.'),
    type: TYPES.OPT,
    class: MAX_UDP_SIZE,
    // The upper bits of the RCODE, version 0, and DO as received (RFC 3225 section 3).
    ttl: (rcode >> 4) * 2 ** 24 + (isDnssecOk ? DNSSEC_OK : 0),
    data: Buffer.alloc(0),
  })

/** At most `limit` octets. If the records do not fit, they are left out and TC is set: the client repeats over TCP. */
const encodeResponse = (query: Query, response: Response, limit: number): Buffer => {
  const rcode = RCODES[response.rcode]
  const answers = encodeRecords(query, response.answers)
  const authority = encodeRecords(query, response.authority)
  const question = query.question ? [query.question.octets] : []
  const opt = query.edns ? [encodeOpt(rcode, query.edns)] : []
  const isAuthoritative = (response.rcode === 'NOERROR' || response.rcode === 'NXDOMAIN') && !response.isReferral
  const flags = FLAGS.response | query.echoedFlags | (isAuthoritative ? FLAGS.authoritative : 0) | (rcode & 0xf)
  const counts = [question.length, answers.length, authority.length, opt.length]
  const message = Buffer.concat([encodeHeader(query.id, flags, counts), ...question, ...answers, ...authority, ...opt])
  if (message.length <= limit) return message
  const header = encodeHeader(query.id, flags | FLAGS.truncated, [question.length, 0, 0, opt.length])
  return Buffer.concat([header, ...question, ...opt])
}

export interface ResponderOptions {
  readonly listZones: () => readonly string[]
  readonly lookup: (zone: string, name: string) => Promise<ZoneView>
  /** Called for the first of consecutive failures only: an outage is one message, not one per query. */
  readonly onError: (error: unknown) => void
  /** Less than the timeout of a resolver, about five seconds: SERVFAIL is better than no response. */
  readonly lookupTimeoutMs?: number
  /** Lookups in flight, including those that timed out. Further queries get SERVFAIL immediately. */
  readonly maxLookups?: number
}

/** Never rejects. `undefined`: no response. */
export type Respond = (message: Buffer, transport: 'udp' | 'tcp') => Promise<Buffer | undefined>

/** CNAMEs followed for one question. A longer chain or a loop gives the records found so far. */
const MAX_CHAIN_LENGTH = 8

const emptyResponse = (rcode: Response['rcode']): Response => ({ rcode, answers: [], authority: [] })

export const createResponder = (options: ResponderOptions): Respond => {
  const { lookup, onError, lookupTimeoutMs = 2000, maxLookups = 1000 } = options
  let pending = 0
  let isFailing = false

  const boundedLookup = (zone: string, name: string): Promise<ZoneView> => {
    if (pending >= maxLookups) throw new Error(`more than ${maxLookups} lookups are waiting`)
    pending += 1
    const settled = lookup(zone, name).finally(() => {
      pending -= 1
    })
    return withTimeout(settled, lookupTimeoutMs)
  }

  const answer = async (query: Query): Promise<Response> => {
    const { content, edns } = query
    if (content.kind === 'error') return emptyResponse(content.rcode)
    if (edns && edns.version > 0) return emptyResponse('BADVERS')
    const longestFirst = options.listZones().toSorted((a, b) => b.length - a.length)
    const zone = longestFirst.find(candidate => isAtOrBelow(content.name, candidate))
    // Other classes, zones of other servers, and transfers.
    if (zone === undefined || !content.isClassIn || /^[AI]XFR$/.test(content.type)) return emptyResponse('REFUSED')

    const answers: RecordSet[] = []
    let name = content.name
    for (let hop = 0; ; hop += 1) {
      const found = resolve(zone, await boundedLookup(zone, name), { name, type: content.type })
      answers.push(...found.answers)
      // RFC 6604 section 3: the code is that of the last name of the chain.
      if (found.alias === undefined || hop === MAX_CHAIN_LENGTH) return { ...found, answers }
      if (answers.some(set => set.name === found.alias)) return { ...found, answers }
      name = found.alias
    }
  }

  return async (message, transport) => {
    const query = parseQuery(message)
    if (!query) return undefined
    const limit = transport === 'udp' ? toUdpLimit(query) : MAX_MESSAGE_SIZE
    try {
      const response = encodeResponse(query, await answer(query), limit)
      isFailing = false
      return response
    } catch (error) {
      if (!isFailing) onError(error)
      isFailing = true
      return encodeResponse(query, emptyResponse('SERVFAIL'), limit)
    }
  }
}

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { ZonePart } from '../../domain/result.ts'
import type { RecordSet } from '../../domain/rrset.ts'
import {
  CLASSES,
  encodeHeader,
  encodeQuestion,
  OPCODES,
  parseMessage,
  toRcodeName,
  type WireRecord,
} from '../../wire/message.ts'
import { printRdata, TYPES, toTypeName } from '../../wire/rdata.ts'
import { exchangeSigned, ServerError, type SignedPeer, toServerError } from './connection.ts'

/** RFC 5936 section 2.1. */
const encodeTransferRequest = (id: number, zone: string): Buffer =>
  Buffer.concat([encodeHeader(id, OPCODES.QUERY << 11, [1, 0, 0, 0]), encodeQuestion(zone, TYPES.AXFR)])

/** Ends a transfer that has no end. Far larger than any zone of the service. */
const MAX_TRANSFER_BYTES = 2 * 1_024 * 1_024 * 1_024

interface PartialRecordSet {
  readonly name: string
  readonly type: string
  ttl: number
  readonly values: Set<string>
}

const toRecordSets = (sets: ReadonlyMap<string, PartialRecordSet>): RecordSet[] =>
  Array.from(sets.values(), ({ name, type, ttl, values }) => ({ name, type, ttl, values: [...values].sort() }))

/**
 * Reads the complete zone by AXFR (RFC 5936). A transfer begins and ends with the same SOA record, and its last message
 * is signed (RFC 8945 section 5.3.1), so all parts are authentic, and complete if it does not throw. Each message is a part
 * of its own, so a record set that two messages share is in two parts.
 */
export const transferZone = async function* (
  peer: SignedPeer,
  zone: string,
  id: number,
): AsyncGenerator<Extract<ZonePart, { kind: 'part' }>, void> {
  /** Not authentic yet: a server signs at least every 100th message. Their records would take far more memory. */
  let unverified: Buffer[] = []
  let soa: string | undefined
  let isComplete = false
  let octetCount = 0

  const add = (sets: Map<string, PartialRecordSet>, record: WireRecord, octets: Buffer): void => {
    if (isComplete) throw new ServerError('sent records after its end')
    if (record.class !== CLASSES.IN) throw new ServerError('sent a record of another class')
    const name = record.name.toLowerCase()
    const type = toTypeName(record.type)
    const value = printRdata(record.type, octets, record.dataAt, record.dataLength)
    if (soa === undefined) {
      if (record.type !== TYPES.SOA || name !== zone)
        throw new ServerError('sent a response that is not a transfer of it')
      soa = value
    } else if (record.type === TYPES.SOA) {
      // RFC 5936 section 2.2: the last record is the first one again.
      if (value !== soa) throw new ServerError('changed it while sending it')
      isComplete = true
      return
    }
    const key = `${name} ${type}`
    const set = sets.get(key)
    if (!set) sets.set(key, { name, type, ttl: record.ttl, values: new Set([value]) })
    else {
      set.values.add(value)
      // RFC 2181 section 5.2: the TTLs of an RRset are equal. If a server violates this, the lowest applies.
      set.ttl = Math.min(set.ttl, record.ttl)
    }
  }

  const toPart = (answers: readonly WireRecord[], octets: Buffer): Extract<ZonePart, { kind: 'part' }> => {
    const sets = new Map<string, PartialRecordSet>()
    for (const record of answers) add(sets, record, octets)
    return { kind: 'part', records: toRecordSets(sets) }
  }

  for await (const { octets, message, isVerified } of exchangeSigned(peer, encodeTransferRequest(id, zone))) {
    if (message.rcode !== 0) throw toServerError('does not transfer it', toRcodeName(message.rcode))
    const [question] = message.questions
    if (question && (question.name.toLowerCase() !== zone || question.type !== TYPES.AXFR))
      throw new ServerError('sent a response to another question')
    octetCount += octets.length
    if (octetCount > MAX_TRANSFER_BYTES) throw new ServerError('sent more than 2 GiB for it', true)
    // Otherwise a server could send empty messages indefinitely.
    if (message.answers.length === 0) throw new ServerError('sent a response that is not a transfer of it')
    if (!isVerified) {
      // The first message, with the other SOA record, is always signed.
      if (message.answers.some(({ type }) => type === TYPES.SOA)) throw new ServerError('did not sign the end of it')
      unverified.push(octets)
      continue
    }
    // The next messages may have arrived already; other work must not wait for all of them.
    for (const earlier of unverified) {
      yield toPart(parseMessage(earlier).answers, earlier)
      await nextTurn()
    }
    unverified = []
    yield toPart(message.answers, octets)
    await nextTurn()
    if (isComplete) break
  }
}

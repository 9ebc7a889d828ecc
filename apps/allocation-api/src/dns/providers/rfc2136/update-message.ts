import { chunkBySize } from '../../../lib/chunk.ts'
import { type RecordChange, recordKey } from '../../domain/rrset.ts'
import {
  CLASSES,
  encodeHeader,
  encodeQuestion,
  encodeRecord,
  encodeValidName,
  HEADER_SIZE,
  MAX_MESSAGE_SIZE,
  OPCODES,
  TYPES,
  toTypeCode,
} from '../../wire/message.ts'
import { encodeData } from '../../wire/rdata.ts'

/** RFC 5936 section 2.1. */
export const encodeTransferRequest = (id: number, zone: string): Buffer =>
  Buffer.concat([encodeHeader(id, OPCODES.QUERY << 11, [1, 0, 0, 0]), encodeQuestion(zone, TYPES.AXFR)])

const record = (name: Buffer, type: number, recordClass: number, ttl: number, data: Buffer): Buffer =>
  encodeRecord({ name, type, class: recordClass, ttl, data })

const nothing = Buffer.alloc(0)

/** All changes at one owner name, as an UPDATE has them: they are applied or rejected together. */
export interface NameUpdate {
  /** The owner name. */
  readonly name: string
  readonly changes: readonly RecordChange[]
  readonly prerequisites: readonly Buffer[]
  readonly updates: readonly Buffer[]
  /** Prerequisites that hold when it is done. They take no more room than `updates`. */
  readonly effects: readonly Buffer[]
}

/**
 * `changes` all have the owner name `name` and were found fit by `validateUpdate`. `shown` has the keys of all record sets that
 * the zone was seen to have; undefined: it was not looked at.
 *
 * A record set that was not there is added only where there is none still (RFC 2136 section 2.4.3): what others have
 * put there meanwhile is not replaced.
 *
 * Deletions come first, so that a CNAME is gone before another type takes its place. A server ignores silently a CNAME
 * that it is to put beside other data (RFC 2136 section 3.4.2.2), after it may have done the deletions, so that order
 * would be half done: prerequisites have the server refuse it whole (section 2.4.3, "RRset does not exist").
 *
 * Whether it was done shows in the mere existence of each RRset (sections 2.4.1 and 2.4.3): the message deletes it
 * first, which no server may ignore but for SOA and the NS of the zone itself (`validateUpdate` rejects these), and a message is
 * done whole, so an RRset that is there afterwards has been added by it. Values and TTLs, which a server may rewrite,
 * need no comparison.
 */
export const buildUpdate = (
  name: string,
  changes: readonly RecordChange[],
  shown: ReadonlySet<string> | undefined,
): NameUpdate => {
  const owner = encodeValidName(name)
  const codeOf = (change: RecordChange): number =>
    toTypeCode(change.kind === 'upsert' ? change.set.type : change.type) ?? TYPES.ANY
  const touched = new Set(changes.map(codeOf))
  const isCnameWanted = changes.some(change => change.kind === 'upsert' && change.set.type === 'CNAME')
  const dnssec: readonly number[] = [TYPES.RRSIG, TYPES.NSEC, TYPES.NSEC3]
  const others = Object.keys(TYPES).map(toTypeCode)
  const absent = [
    ...(isCnameWanted ? others.filter(code => code !== undefined && !touched.has(code) && !dnssec.includes(code)) : []),
    ...changes.filter(change => change.kind === 'upsert' && shown?.has(recordKey(change.set)) === false).map(codeOf),
  ]
  return {
    name,
    changes,
    prerequisites: absent.map(code => record(owner, code ?? 0, CLASSES.NONE, 0, nothing)),
    updates: [
      // RFC 2136 section 2.5.2: delete an RRset.
      ...changes.map(change => record(owner, codeOf(change), CLASSES.ANY, 0, nothing)),
      // Section 2.5.1: add to an RRset.
      ...changes.flatMap(change =>
        change.kind === 'upsert'
          ? change.set.values.map(value =>
              record(owner, codeOf(change), CLASSES.IN, change.set.ttl, encodeData(change.set.type, value) ?? nothing),
            )
          : [],
      ),
    ],
    effects: changes.map(change =>
      record(owner, codeOf(change), change.kind === 'upsert' ? CLASSES.ANY : CLASSES.NONE, 0, nothing),
    ),
  }
}

const totalSize = (parts: readonly Buffer[]): number => parts.reduce((sum, part) => sum + part.length, 0)

export const updateSize = ({ prerequisites, updates }: NameUpdate): number =>
  totalSize(prerequisites) + totalSize(updates)

/** Octets that the orders of one message may have, when its signature takes `tsigSize`. */
export const maxUpdateSize = (zone: string, tsigSize: number): number =>
  MAX_MESSAGE_SIZE - HEADER_SIZE - encodeQuestion(zone, TYPES.SOA).length - tsigSize

/** Runs of orders, each of at most `most` and in a message of at most `limit` octets; the fewest there can be. */
export const chunkUpdates = (orders: readonly NameUpdate[], limit: number, most?: number): NameUpdate[][] =>
  chunkBySize(orders, updateSize, limit, most)

const update = (id: number, zone: string, prerequisites: readonly Buffer[], updates: readonly Buffer[]): Buffer =>
  Buffer.concat([
    encodeHeader(id, OPCODES.UPDATE << 11, [1, prerequisites.length, updates.length, 0]),
    encodeQuestion(zone, TYPES.SOA),
    ...prerequisites,
    ...updates,
  ])

/** RFC 2136 section 2: the server does all of it or nothing. */
export const encodeUpdate = (id: number, zone: string, orders: readonly NameUpdate[]): Buffer =>
  update(
    id,
    zone,
    orders.flatMap(order => order.prerequisites),
    orders.flatMap(order => order.updates),
  )

/**
 * An update of nothing: an error unless all orders are done. Unlike a query it needs no other permission, and meets the
 * zone's own data: no wildcard, alias or delegation in between (RFC 2136 section 3.2).
 */
export const encodeEffectCheck = (id: number, zone: string, orders: readonly NameUpdate[]): Buffer =>
  update(
    id,
    zone,
    orders.flatMap(order => order.effects),
    [],
  )

/** Whether `message` answers the request with this id and opcode. */
export const isResponseTo = (message: { id: number; isResponse: boolean; opcode: number }, request: Buffer): boolean =>
  message.isResponse &&
  message.id === request.readUInt16BE(0) &&
  message.opcode === ((request.readUInt16BE(2) >> 11) & 0xf)

import { chunkBySize } from '../../../lib/chunk.ts'
import { type BatchResult, bisect } from '../../bisect.ts'
import { changeKey, isAtOrBelow, type RecordChange, recordKey, toOwnerName } from '../../domain/rrset.ts'
import {
  CLASSES,
  encodeHeader,
  encodeQuestion,
  encodeRecord,
  encodeValidName,
  HEADER_SIZE,
  MAX_MESSAGE_SIZE,
  OPCODES,
  toRcodeName,
} from '../../wire/message.ts'
import { encodeName, encodeRdata, TYPES, toTypeCode } from '../../wire/rdata.ts'
import { exchangeSigned, KeyRejectedError, ServerError, type SignedPeer, toServerError } from './connection.ts'
import { toTsigSize } from './tsig.ts'

const record = (name: Buffer, type: number, recordClass: number, ttl: number, data: Buffer): Buffer =>
  encodeRecord({ name, type, class: recordClass, ttl, data })

const nothing = Buffer.alloc(0)

/** All changes at one owner name. A server applies or rejects them as a whole. */
interface NameUpdate {
  readonly name: string
  readonly changes: readonly RecordChange[]
  readonly prerequisites: readonly Buffer[]
  readonly updates: readonly Buffer[]
  /** Prerequisites that hold after the update was applied. They are never larger than `updates`. */
  readonly effects: readonly Buffer[]
}

/**
 * `changes` are valid and all have the owner name `name`. `present` has the keys of all record sets that the last read
 * of the zone returned; undefined: there was no read.
 *
 * The prerequisite "RRset does not exist" (RFC 2136 section 2.4.3) protects a record set that another writer has added
 * since that read. The same prerequisite for all other types guards a CNAME: a server silently ignores a CNAME beside
 * other data (section 3.4.2.2), possibly after it has applied the deletions. With the prerequisite it rejects the whole
 * update. Deletions come first, so that a CNAME is gone before another type replaces it.
 *
 * The existence of each RRset shows whether the update was applied (sections 2.4.1 and 2.4.3). The update deletes the
 * RRset first, which a server may ignore only for SOA and NS at the apex, and `validateUpdate` rejects these. An update
 * is atomic, so an RRset that exists afterwards was added by it. Values and TTLs are not compared, because a server may
 * rewrite them.
 */
export const buildUpdate = (
  name: string,
  changes: readonly RecordChange[],
  present: ReadonlySet<string> | undefined,
): NameUpdate => {
  const owner = encodeValidName(name)
  const toChangeTypeCode = (change: RecordChange): number =>
    toTypeCode(change.kind === 'upsert' ? change.set.type : change.type) ?? TYPES.ANY
  const touched = new Set(changes.map(toChangeTypeCode))
  const isCnameWanted = changes.some(change => change.kind === 'upsert' && change.set.type === 'CNAME')
  const dnssec: readonly number[] = [TYPES.RRSIG, TYPES.NSEC, TYPES.NSEC3]
  const others = Object.keys(TYPES).map(toTypeCode)
  const absent = [
    ...(isCnameWanted ? others.filter(code => code !== undefined && !touched.has(code) && !dnssec.includes(code)) : []),
    ...changes
      .filter(change => change.kind === 'upsert' && present?.has(recordKey(change.set)) === false)
      .map(toChangeTypeCode),
  ]
  return {
    name,
    changes,
    prerequisites: absent.map(code => record(owner, code ?? 0, CLASSES.NONE, 0, nothing)),
    updates: [
      // RFC 2136 section 2.5.2: delete an RRset.
      ...changes.map(change => record(owner, toChangeTypeCode(change), CLASSES.ANY, 0, nothing)),
      // Section 2.5.1: add to an RRset.
      ...changes.flatMap(change =>
        change.kind === 'upsert'
          ? change.set.values.map(value =>
              record(
                owner,
                toChangeTypeCode(change),
                CLASSES.IN,
                change.set.ttl,
                encodeRdata(change.set.type, value) ?? nothing,
              ),
            )
          : [],
      ),
    ],
    effects: changes.map(change =>
      record(owner, toChangeTypeCode(change), change.kind === 'upsert' ? CLASSES.ANY : CLASSES.NONE, 0, nothing),
    ),
  }
}

const totalSize = (parts: readonly Buffer[]): number => parts.reduce((sum, part) => sum + part.length, 0)

export const toUpdateSize = ({ prerequisites, updates }: NameUpdate): number =>
  totalSize(prerequisites) + totalSize(updates)

/** Octets available for updates in one message whose signature has `tsigSize` octets. */
export const maxUpdateSize = (zone: string, tsigSize: number): number =>
  MAX_MESSAGE_SIZE - HEADER_SIZE - encodeQuestion(zone, TYPES.SOA).length - tsigSize

/** Why `change` is not sent to a server; undefined: it can be encoded. */
const validateUpdate = (zone: string, change: RecordChange): string | undefined => {
  const { name, type } = change.kind === 'upsert' ? change.set : change
  if (!isAtOrBelow(name, zone)) return 'the name is not in this zone'
  if (!encodeName(name)) return 'the name is not a domain name'
  if (toTypeCode(type) === undefined) return `${type} is not a record type of a zone`
  // RFC 2136 sections 3.4.2.2 to 3.4.2.4: a server ignores some changes to these silently.
  if (type === 'SOA' || (type === 'NS' && name === zone))
    return `the server manages the ${type} records at the apex of the zone`
  if (change.kind === 'delete') return undefined
  const { ttl, values } = change.set
  // RFC 2181 section 8: 31 bits.
  if (!Number.isInteger(ttl) || ttl < 0 || ttl > 2 ** 31 - 1) return 'the TTL is not between 0 and 2147483647 seconds'
  if (values.length === 0) return 'the record set has no value'
  if (values.some(value => encodeRdata(type, value) === undefined)) return `a value is not valid for the type ${type}`
  if (type === 'CNAME' && values.length > 1) return 'a name can have only one CNAME'
  return undefined
}

interface BuiltUpdates {
  readonly updates: readonly NameUpdate[]
  /** Owner name to reason. */
  readonly rejected: ReadonlyMap<string, string>
}

/** One update for each owner name, without those that are not valid or too large for a message. */
export const buildUpdates = (
  zone: string,
  changes: readonly RecordChange[],
  { present, limit }: { present: ReadonlySet<string> | undefined; limit: number },
): BuiltUpdates => {
  const rejected = new Map<string, string>()
  const updates: NameUpdate[] = []
  for (const [name, atName] of Map.groupBy(changes, toOwnerName)) {
    const reason = atName.map(change => validateUpdate(zone, change)).find(found => found !== undefined)
    const lastChanges = [...new Map(atName.map(change => [changeKey(change), change])).values()]
    const update = reason === undefined ? buildUpdate(name, lastChanges, present) : undefined
    if (update && toUpdateSize(update) <= limit) updates.push(update)
    else rejected.set(name, reason ?? 'the record sets at this name do not fit into one DNS message')
  }
  return { updates, rejected }
}

/** Splits `updates` into as few batches as possible, each of at most `maxCount` updates and `limit` octets. */
export const chunkUpdates = (updates: readonly NameUpdate[], limit: number, maxCount?: number): NameUpdate[][] =>
  chunkBySize(updates, toUpdateSize, limit, maxCount)

const encodeMessage = (
  id: number,
  zone: string,
  prerequisites: readonly Buffer[],
  updates: readonly Buffer[],
): Buffer =>
  Buffer.concat([
    encodeHeader(id, OPCODES.UPDATE << 11, [1, prerequisites.length, updates.length, 0]),
    encodeQuestion(zone, TYPES.SOA),
    ...prerequisites,
    ...updates,
  ])

/** RFC 2136 section 2: a server applies all of the message or nothing. */
export const encodeUpdate = (id: number, zone: string, updates: readonly NameUpdate[]): Buffer =>
  encodeMessage(
    id,
    zone,
    updates.flatMap(({ prerequisites }) => prerequisites),
    updates.flatMap(nameUpdate => nameUpdate.updates),
  )

/**
 * Checks whether `updates` were applied: an update with prerequisites only, which fails unless all of them hold. Unlike
 * a query, it needs no other permission and sees the zone's own data, without wildcards, aliases or delegations (RFC
 * 2136 section 3.2).
 */
export const encodeEffectCheck = (id: number, zone: string, updates: readonly NameUpdate[]): Buffer =>
  encodeMessage(
    id,
    zone,
    updates.flatMap(({ effects }) => effects),
    [],
  )

/** The responses that are about a record. Others can be about the zone or the server (RFC 2136 section 2.2). */
const REJECTION_REASONS: Readonly<Record<string, string>> = {
  YXRRSET: 'the name has records that the last read did not return, or that conflict with a CNAME (YXRRSET)',
  NOTZONE: 'the name is not in this zone (NOTZONE)',
  REFUSED: 'the server does not allow this key to change it, or does not accept such a record (REFUSED)',
  BADKEY: 'the server does not allow this key to change it (BADKEY)',
}

const RECORD_REJECTIONS: ReadonlySet<string> = new Set([...Object.keys(REJECTION_REASONS), 'NXRRSET', 'YXDOMAIN'])

/** The server does not have this zone, or is not its primary (RFC 2136 section 3.1). Every other update fails too. */
const ZONE_REJECTIONS = new Set(['NOTAUTH', 'NOTIMP'])
/** The key may not update this zone, or not this name. */
const KEY_REJECTIONS = new Set(['REFUSED', 'BADKEY'])

/**
 * Updates in one message. PowerDNS is so slow at replacing an RRset in a large zone that a full
 * message would exceed the timeout of a call, at each retry again.
 */
const MAX_UPDATES = 100
/** Rejections per message after which the bisection stops. Enough to find at least two faulty updates in a message. */
const MAX_REJECTIONS = 16

/**
 * Whether the server lets the key update `name`, which does not exist in the zone. The update deletes a record set that does not exist, so it
 * changes nothing, not even the serial (RFC 2136 sections 3.4.2.3 and 3.6). Throws a `ServerError` if it is not allowed.
 */
export const checkUpdate = async (
  peer: SignedPeer,
  zone: string,
  name: string,
  id: number,
): Promise<{ readonly kind: 'writable' }> => {
  // The types of the service's own records. A grant can be for some types only.
  const update = buildUpdate(
    name,
    ['A', 'TXT'].map(type => ({ kind: 'delete', name, type })),
    undefined,
  )
  for await (const { message } of exchangeSigned(peer, encodeUpdate(id, zone, [update]))) {
    const rcode = toRcodeName(message.rcode)
    if (rcode !== 'NOERROR') throw toServerError('does not allow this key to update it', rcode)
    return { kind: 'writable' }
  }
  throw new ServerError('sent no response')
}

const isNewAlias = ({ changes }: NameUpdate): boolean =>
  changes.some(change => change.kind === 'delete') &&
  changes.some(change => change.kind === 'upsert' && change.set.type === 'CNAME')

interface UpdateResponse {
  readonly rejected: ReadonlyMap<NameUpdate, string>
  readonly skipped: readonly NameUpdate[]
}

/** Every update that the outcome does not contain was applied. */
export const sendUpdates = async (
  peer: SignedPeer,
  zone: string,
  updates: readonly NameUpdate[],
  nextId: () => number,
): Promise<UpdateResponse> => {
  /** BADKEY is not signed. A forged one has no more effect than a closed connection: no update counts as applied. */
  const requestRcode = async (request: Buffer): Promise<string> => {
    for await (const { message } of exchangeSigned(peer, request)) return toRcodeName(message.rcode)
    throw new ServerError('sent no response')
  }
  const submit = (batch: readonly NameUpdate[]): Promise<string> =>
    requestRcode(encodeUpdate(nextId(), zone, batch)).catch((error: unknown) => {
      if (error instanceof KeyRejectedError && batch.length > 0) return 'BADKEY'
      throw error
    })

  /**
   * Calls `attempt` for each batch, and bisects the batches that it rejects. If the search ends early and no batch was
   * accepted, the cause is not an update: the result is a `ServerError` with the text `allRejected`.
   */
  const search = async (
    batches: readonly (readonly NameUpdate[])[],
    attempt: (batch: readonly NameUpdate[]) => Promise<{ readonly rcode: string; readonly reason?: string }>,
    allRejected: string,
  ): Promise<UpdateResponse> => {
    let isAnyAccepted = false
    let lastRcode = ''
    const run = async (batch: readonly NameUpdate[]): Promise<BatchResult<NameUpdate, never>> => {
      const { rcode, reason } = await attempt(batch)
      if (reason === undefined) isAnyAccepted = true
      else lastRcode = rcode
      return reason === undefined
        ? { kind: 'accepted' }
        : { kind: 'rejected', reason, isDoubtful: !RECORD_REJECTIONS.has(rcode) }
    }
    const limits = { maxRejections: MAX_REJECTIONS * batches.length, now: () => 1_000 * peer.now() }
    const result = await bisect(batches, run, limits)
    if (result.kind === 'failed') return result.failure
    if (result.kind === 'refused') throw toServerError(allRejected, lastRcode)
    if (result.skipped.length > 0 && !isAnyAccepted) throw toServerError(allRejected, lastRcode)
    return result
  }

  const limit = maxUpdateSize(zone, toTsigSize(peer.key))
  let mayUpdate = false
  const updateOutcome = await search(
    chunkUpdates(updates, limit, MAX_UPDATES),
    async batch => {
      const rcode = await submit(batch)
      if (ZONE_REJECTIONS.has(rcode)) throw toServerError('does not accept updates of it', rcode)
      if (KEY_REJECTIONS.has(rcode) && !mayUpdate) {
        // An empty update distinguishes a key without any permission from one with permission for some names.
        const emptyUpdateRcode = await submit([])
        if (emptyUpdateRcode !== 'NOERROR')
          throw toServerError('does not allow this key to update it', emptyUpdateRcode)
        mayUpdate = true
      }
      mayUpdate ||= rcode === 'NOERROR'
      return rcode === 'NOERROR'
        ? { rcode }
        : { rcode, reason: REJECTION_REASONS[rcode] ?? `the server rejected it (${rcode})` }
    },
    'rejects every update of it',
  )

  // RFC 2136 section 3.4.2.2: a server silently ignores some updates, such as data beside a CNAME, and reports success.
  const check = (sent: readonly NameUpdate[]) =>
    search(
      chunkUpdates(sent, limit),
      async batch => {
        const rcode = await requestRcode(encodeEffectCheck(nextId(), zone, batch))
        if (rcode === 'NOERROR') return { rcode }
        if (rcode !== 'NXRRSET' && rcode !== 'YXRRSET')
          throw toServerError('does not show whether it applied an update', rcode)
        const reason = `the server ignored it, for example because of a CNAME at this name, or another writer reverted it (${rcode})`
        return { rcode, reason }
      },
      'ignores every update of it',
    )
  const skipped = new Set(updateOutcome.skipped)
  let ignored = await check(updates.filter(update => !updateOutcome.rejected.has(update) && !skipped.has(update)))
  // Knot ignores a CNAME in the update that deletes what was at its name, if it signs the zone: the name still has NSEC.
  const aliases = [...ignored.rejected.keys()].filter(isNewAlias)
  if (aliases.length > 0) {
    for (const batch of chunkUpdates(aliases, limit, MAX_UPDATES)) await submit(batch)
    const again = await check(aliases)
    const others = [...ignored.rejected].filter(([update]) => !aliases.includes(update))
    ignored = { rejected: new Map([...others, ...again.rejected]), skipped: [...ignored.skipped, ...again.skipped] }
  }
  return {
    rejected: new Map([...updateOutcome.rejected, ...ignored.rejected]),
    skipped: [...updateOutcome.skipped, ...ignored.skipped],
  }
}

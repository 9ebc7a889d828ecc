import { type BatchResult, bisect } from '../../bisect.ts'
import { changeKey, type RecordChange, toOwnerName } from '../../domain/rrset.ts'
import { toRcodeName } from '../../wire/message.ts'
import { KeyRejectedError, ServerError, toServerError } from './errors.ts'
import { exchangeSigned, type SignedPeer } from './query.ts'
import { tsigSize } from './tsig.ts'
import {
  buildUpdate,
  chunkUpdates,
  encodeEffectCheck,
  encodeUpdate,
  maxUpdateSize,
  type NameUpdate,
  updateSize,
} from './update-message.ts'
import { validateUpdate } from './validate.ts'

export interface BuiltUpdates {
  readonly updates: readonly NameUpdate[]
  /** Owner name to reason. */
  readonly rejected: ReadonlyMap<string, string>
}

/** One update for each owner name, without those that no server accepts. */
export const buildUpdates = (
  zone: string,
  changes: readonly RecordChange[],
  { shown, limit }: { shown: ReadonlySet<string> | undefined; limit: number },
): BuiltUpdates => {
  const rejected = new Map<string, string>()
  const orders: NameUpdate[] = []
  for (const [name, atName] of Map.groupBy(changes, toOwnerName)) {
    const reason = atName.map(change => validateUpdate(zone, change)).find(found => found !== undefined)
    const lastSaid = [...new Map(atName.map(change => [changeKey(change), change])).values()]
    const order = reason === undefined ? buildUpdate(name, lastSaid, shown) : undefined
    if (order && updateSize(order) <= limit) orders.push(order)
    else rejected.set(name, reason ?? 'there is more of it than a DNS message can carry')
  }
  return { updates: orders, rejected }
}

const reasons: Readonly<Record<string, string>> = {
  YXRRSET: 'records stand at this name that were not seen before, or that a CNAME cannot stand beside (YXRRSET)',
  NOTZONE: 'the name is not in this zone (NOTZONE)',
  REFUSED: 'the server does not let this key change it, or does not take such a record (REFUSED)',
  BADKEY: 'the server does not let this key change it (BADKEY)',
}

/** The server does not have this zone, or is not its primary (RFC 2136 section 3.1). Every other update fails too. */
const ZONE_REJECTIONS = new Set(['NOTAUTH', 'NOTIMP'])
/** The key may not update this zone, or not this name. */
const KEY_REJECTIONS = new Set(['REFUSED', 'BADKEY'])

/**
 * Orders of one message. PowerDNS 4.7 takes about 15 ms to replace an RRset in a zone of 10,000 records: a message of
 * all that fits would take it longer than a call may last, each time anew.
 */
const MAX_UPDATES = 100
/** Refusals for each message after which a search is ended: two faulty orders are found in one at least. */
const MAX_REJECTIONS = 16

export interface UpdateOutcome {
  readonly rejected: ReadonlyMap<NameUpdate, string>
  readonly skipped: readonly NameUpdate[]
}

/** Each update is applied, or is in the outcome. */
export const sendUpdates = async (
  peer: SignedPeer,
  zone: string,
  orders: readonly NameUpdate[],
  nextId: () => number,
): Promise<UpdateOutcome> => {
  /** BADKEY is not signed; whoever forged it could as well have cut the connection: nothing counts as done by it. */
  const rcodeOf = async (request: Buffer): Promise<string> => {
    for await (const { message } of exchangeSigned(peer, request)) return toRcodeName(message.rcode)
    throw new ServerError('sent no response')
  }
  const submit = (batch: readonly NameUpdate[]): Promise<string> =>
    rcodeOf(encodeUpdate(nextId(), zone, batch)).catch((error: unknown) => {
      if (error instanceof KeyRejectedError && batch.length > 0) return 'BADKEY'
      throw error
    })

  /**
   * `attempt` for each of `batches`, and where it rejects one, for parts of it. When it has taken none although it was
   * asked so often that not all were got to, that is not the orders' fault: `nothingTaken` says what it is instead.
   */
  const search = async (
    batches: readonly (readonly NameUpdate[])[],
    attempt: (batch: readonly NameUpdate[]) => Promise<{ readonly rcode: string; readonly reason?: string }>,
    nothingTaken: string,
  ): Promise<UpdateOutcome> => {
    let isAnyTaken = false
    let last = ''
    const run = async (batch: readonly NameUpdate[]): Promise<BatchResult<NameUpdate, never>> => {
      const { rcode, reason } = await attempt(batch)
      if (reason === undefined) isAnyTaken = true
      else last = rcode
      return reason === undefined ? { kind: 'accepted' } : { kind: 'rejected', reason }
    }
    const limits = { maxRejections: MAX_REJECTIONS * batches.length, now: () => 1_000 * peer.now() }
    const result = await bisect(batches, run, limits)
    if (result.kind === 'failed') return result.failure
    if (result.skipped.length > 0 && !isAnyTaken) throw toServerError(nothingTaken, last)
    return result
  }

  const limit = maxUpdateSize(zone, tsigSize(peer.key))
  let mayUpdate = false
  const updated = await search(
    chunkUpdates(orders, limit, MAX_UPDATES),
    async batch => {
      const rcode = await submit(batch)
      if (ZONE_REJECTIONS.has(rcode)) throw toServerError('does not take updates of it', rcode)
      if (KEY_REJECTIONS.has(rcode) && !mayUpdate) {
        // An update of nothing tells apart a key that may do nothing from one that may do some of it.
        const bare = await submit([])
        if (bare !== 'NOERROR') throw toServerError('does not let this key update it', bare)
        mayUpdate = true
      }
      mayUpdate ||= rcode === 'NOERROR'
      return rcode === 'NOERROR' ? { rcode } : { rcode, reason: reasons[rcode] ?? `the server refused it (${rcode})` }
    },
    'takes no update of it',
  )

  // RFC 2136 section 3.4.2.2: data beside a CNAME, among others, is ignored silently, and reported as success.
  const left = new Set(updated.skipped)
  const ignored = await search(
    chunkUpdates(
      orders.filter(order => !updated.rejected.has(order) && !left.has(order)),
      limit,
    ),
    async batch => {
      const rcode = await rcodeOf(encodeEffectCheck(nextId(), zone, batch))
      if (rcode === 'NOERROR') return { rcode }
      if (rcode !== 'NXRRSET' && rcode !== 'YXRRSET')
        throw toServerError('does not tell what it did of an update', rcode)
      const reason = `the server ignored it, as for a CNAME that stands at this name, or somebody undid it (${rcode})`
      return { rcode, reason }
    },
    'ignores every update of it',
  )
  return {
    rejected: new Map([...updated.rejected, ...ignored.rejected]),
    skipped: [...updated.skipped, ...ignored.skipped],
  }
}

import { type Attempt, isolate } from '../../bisect.ts'
import { changeKeyOf, ownerOf, type RecordChange } from '../../domain/rrset.ts'
import { KeyDenied, ServerTrouble, troubleOf } from './errors.ts'
import { batchesOf, effectRequest, type Order, orderOf, orderSize, rcodeName, room, updateRequest } from './message.ts'
import { ask, type SignedPeer } from './query.ts'
import { tsigSize } from './tsig.ts'
import { refusalOf } from './validate.ts'

export interface Orders {
  readonly orders: readonly Order[]
  /** Owner name to reason. */
  readonly refused: ReadonlyMap<string, string>
}

/** What the server is asked for: one order for each owner name, without those that no server could take. */
export const ordersOf = (
  zone: string,
  changes: readonly RecordChange[],
  { shown, limit }: { shown: ReadonlySet<string> | undefined; limit: number },
): Orders => {
  const refused = new Map<string, string>()
  const orders: Order[] = []
  for (const [name, atName] of Map.groupBy(changes, ownerOf)) {
    const reason = atName.map(change => refusalOf(zone, change)).find(found => found !== undefined)
    const lastSaid = [...new Map(atName.map(change => [changeKeyOf(change), change])).values()]
    const order = reason === undefined ? orderOf(name, lastSaid, shown) : undefined
    if (order && orderSize(order) <= limit) orders.push(order)
    else refused.set(name, reason ?? 'there is more of it than a DNS message can carry')
  }
  return { orders, refused }
}

const reasons: Readonly<Record<string, string>> = {
  YXRRSET: 'records stand at this name that were not seen before, or that a CNAME cannot stand beside (YXRRSET)',
  NOTZONE: 'the name is not in this zone (NOTZONE)',
  REFUSED: 'the server does not let this key change it, or does not take such a record (REFUSED)',
  BADKEY: 'the server does not let this key change it (BADKEY)',
}

/** What no other update changes: the server has no such zone, or not as its primary (RFC 2136 section 3.1). */
const aboutAll = new Set(['NOTAUTH', 'NOTIMP'])
/** Said of a key that may do nothing here, and of one that may not do this. */
const aboutKey = new Set(['REFUSED', 'BADKEY'])

/**
 * Orders of one message. PowerDNS 4.7 takes about 15 ms to replace an RRset in a zone of 10,000 records: a message of
 * all that fits would take it longer than a call may last, each time anew.
 */
const mostOrders = 100
/** Refusals for each message after which a search is ended: two faulty orders are found in one at least. */
const mostRefusals = 16

export interface Outcome {
  readonly refused: ReadonlyMap<Order, string>
  readonly untried: readonly Order[]
}

/** Each order is done or in the outcome. */
export const sendOrders = async (
  peer: SignedPeer,
  zone: string,
  orders: readonly Order[],
  nextId: () => number,
): Promise<Outcome> => {
  /** BADKEY is not signed; whoever forged it could as well have cut the connection: nothing counts as done by it. */
  const rcodeOf = async (request: Buffer): Promise<string> => {
    for await (const { message } of ask(peer, request)) return rcodeName(message.rcode)
    throw new ServerTrouble('gave no answer')
  }
  const submit = (batch: readonly Order[]): Promise<string> =>
    rcodeOf(updateRequest(nextId(), zone, batch)).catch((error: unknown) => {
      if (error instanceof KeyDenied && batch.length > 0) return 'BADKEY'
      throw error
    })

  /**
   * `attempt` for each of `batches`, and where it refuses one, for parts of it. When it has taken none although it was
   * asked so often that not all were got to, that is not the orders' fault: `nothingTaken` says what it is instead.
   */
  const search = async (
    batches: readonly (readonly Order[])[],
    attempt: (batch: readonly Order[]) => Promise<{ readonly rcode: string; readonly reason?: string }>,
    nothingTaken: string,
  ): Promise<Outcome> => {
    let isAnyTaken = false
    let last = ''
    const run = async (batch: readonly Order[]): Promise<Attempt<Order, never>> => {
      const { rcode, reason } = await attempt(batch)
      if (reason === undefined) isAnyTaken = true
      else last = rcode
      return reason === undefined ? { kind: 'taken' } : { kind: 'refused', reason }
    }
    const limits = { most: mostRefusals * batches.length, now: () => 1_000 * peer.now() }
    const result = await isolate(batches, run, limits)
    if (result.kind === 'failed') return result.failure
    if (result.untried.length > 0 && !isAnyTaken) throw troubleOf(nothingTaken, last)
    return result
  }

  const limit = room(zone, tsigSize(peer.key))
  let mayUpdate = false
  const updated = await search(
    batchesOf(orders, limit, mostOrders),
    async batch => {
      const rcode = await submit(batch)
      if (aboutAll.has(rcode)) throw troubleOf('does not take updates of it', rcode)
      if (aboutKey.has(rcode) && !mayUpdate) {
        // An update of nothing tells apart a key that may do nothing from one that may do some of it.
        const bare = await submit([])
        if (bare !== 'NOERROR') throw troubleOf('does not let this key update it', bare)
        mayUpdate = true
      }
      mayUpdate ||= rcode === 'NOERROR'
      return rcode === 'NOERROR' ? { rcode } : { rcode, reason: reasons[rcode] ?? `the server refused it (${rcode})` }
    },
    'takes no update of it',
  )

  // RFC 2136 section 3.4.2.2: data beside a CNAME, among others, is ignored silently, and reported as success.
  const left = new Set(updated.untried)
  const ignored = await search(
    batchesOf(
      orders.filter(order => !updated.refused.has(order) && !left.has(order)),
      limit,
    ),
    async batch => {
      const rcode = await rcodeOf(effectRequest(nextId(), zone, batch))
      if (rcode === 'NOERROR') return { rcode }
      if (rcode !== 'NXRRSET' && rcode !== 'YXRRSET') throw troubleOf('does not tell what it did of an update', rcode)
      const reason = `the server ignored it, as for a CNAME that stands at this name, or somebody undid it (${rcode})`
      return { rcode, reason }
    },
    'ignores every update of it',
  )
  return {
    refused: new Map([...updated.refused, ...ignored.refused]),
    untried: [...updated.untried, ...ignored.untried],
  }
}

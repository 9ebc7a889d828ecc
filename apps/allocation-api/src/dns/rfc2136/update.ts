import { type RecordChange, type RecordSet, recordKey } from '../record-set.ts'
import { ask, type SignedPeer } from './exchange.ts'
import { KeyDenied, ServerTrouble } from './fault.ts'
import { batchesOf, type Order, orderOf, orderSize, rcodeName, room, updateRequest } from './message.ts'
import { canonicalValue } from './record-data.ts'
import { refusalOf } from './refusal.ts'
import { tsigSize } from './tsig.ts'

const keyOf = (change: RecordChange): string => recordKey(change.kind === 'upsert' ? change.set : change)
const ownerOf = (change: RecordChange): string => (change.kind === 'upsert' ? change.set.name : change.name)

export interface Orders {
  readonly orders: readonly Order[]
  /** Owner name to reason. */
  readonly refused: ReadonlyMap<string, string>
}

/** What the server is asked for: one order for each owner name, without those that no server could take. */
export const ordersOf = (zone: string, changes: readonly RecordChange[], limit: number): Orders => {
  const refused = new Map<string, string>()
  const orders: Order[] = []
  for (const [name, atName] of Map.groupBy(changes, ownerOf)) {
    const reason = atName.map(change => refusalOf(zone, change)).find(found => found !== undefined)
    const lastSaid = [...new Map(atName.map(change => [keyOf(change), change])).values()]
    const order = reason === undefined ? orderOf(name, lastSaid) : undefined
    if (order && orderSize(order) <= limit) orders.push(order)
    else refused.set(name, reason ?? 'there is more of it than a DNS message can carry')
  }
  return { orders, refused }
}

const reasons: Readonly<Record<string, string>> = {
  YXRRSET: 'other records stand at this name, and a CNAME stands alone (YXRRSET)',
  NOTZONE: 'the name is not in this zone (NOTZONE)',
  REFUSED: 'the server does not let this key change it (REFUSED)',
  BADKEY: 'the server does not let this key change it (BADKEY)',
}

/** What one RRset does not change: the server has no such zone, or not as its primary (RFC 2136 section 3.1). */
const aboutZone = new Set(['NOTAUTH', 'NOTIMP'])
/** Said of a key that may do nothing here, and of one that may not do this. */
const aboutKey = new Set(['REFUSED', 'BADKEY'])
/** Orders refused with SERVFAIL while none was taken, after which the server is held to be at fault and not they. */
const manyFailures = 8

/** Each order is done or in the answer: owner name to reason. A message that is refused is cut in two. */
export const sendOrders = async (
  peer: SignedPeer,
  zone: string,
  orders: readonly Order[],
  nextId: () => number,
): Promise<Map<string, string>> => {
  const refused = new Map<string, string>()
  let failures = 0
  /** It took an order, or would. */
  let mayUpdate = false

  /** BADKEY is not signed; whoever forged it could as well have cut the connection: nothing counts as done by it. */
  const rcodeOf = async (batch: readonly Order[]): Promise<string> => {
    try {
      for await (const { message } of ask(peer, updateRequest(nextId(), zone, batch))) return rcodeName(message.rcode)
      throw new ServerTrouble('gave no answer')
    } catch (error) {
      if (error instanceof KeyDenied && batch.length > 0) return 'BADKEY'
      throw error
    }
  }

  /** An update of nothing tells apart a key that may do nothing from one that may do some of it. */
  const expectPermission = async (): Promise<void> => {
    if (mayUpdate) return
    const rcode = await rcodeOf([])
    if (rcode !== 'NOERROR') throw new ServerTrouble(`does not let this key update it (${rcode})`)
    mayUpdate = true
  }

  const submit = async (batch: readonly Order[]): Promise<void> => {
    const rcode = await rcodeOf(batch)
    const [only] = batch
    if (rcode === 'NOERROR') {
      mayUpdate = true
      return
    }
    if (aboutZone.has(rcode)) throw new ServerTrouble(`does not take updates of it (${rcode})`)
    if (aboutKey.has(rcode)) await expectPermission()
    if (batch.length === 1 && only) {
      refused.set(only.name, reasons[rcode] ?? `the server refused it (${rcode})`)
      if (rcode === 'SERVFAIL') failures += 1
      if (failures >= manyFailures && !mayUpdate) throw new ServerTrouble('fails at every update of it (SERVFAIL)')
      return
    }
    const middle = Math.ceil(batch.length / 2)
    await submit(batch.slice(0, middle))
    await submit(batch.slice(middle))
  }

  for (const batch of batchesOf(orders, room(zone, tsigSize(peer.key)))) await submit(batch)
  return refused
}

const canonicalValues = ({ type, values }: RecordSet): string =>
  JSON.stringify([...new Set(values.map(value => canonicalValue(type, value)))].sort())

const shortfallOf = (change: RecordChange, present: RecordSet | undefined, hasCname: boolean): string | undefined => {
  if (change.kind === 'delete') return present && 'the server ignored the deletion'
  const { set } = change
  if (present && canonicalValues(present) === canonicalValues(set))
    return present.ttl === set.ttl ? undefined : `the server gave it a TTL of ${present.ttl} s`
  return hasCname && set.type !== 'CNAME'
    ? 'a CNAME record stands at this name, and stands alone'
    : 'the server ignored it, or somebody changed it meanwhile'
}

/**
 * What a server said it did and did not: it ignores silently some of an update and reports success (RFC 2136 section
 * 3.4.2: data beside a CNAME, the NS records of the zone itself). Owner name to reason.
 */
export const ignoredOf = (orders: readonly Order[], zoneNow: readonly RecordSet[]): Map<string, string> => {
  const present = new Map(zoneNow.map(set => [recordKey(set), set]))
  const ignored = new Map<string, string>()
  for (const { name, changes } of orders) {
    const hasCname = present.has(`${name} CNAME`)
    for (const change of changes) {
      const reason = shortfallOf(change, present.get(keyOf(change)), hasCname)
      if (reason !== undefined) ignored.set(name, reason)
    }
  }
  return ignored
}

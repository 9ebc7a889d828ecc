import { encodeHeader, encodeQuestion, FLAGS, OPCODES, parseMessage } from '../../wire/message.ts'
import { encodeName, TYPES } from '../../wire/rdata.ts'
import type { SignedPeer } from './connection.ts'
import { type Chain, sign, startChain, verify } from './tsig.ts'

/** Queries in flight. A server answers them in any order (RFC 7766 section 6.2.1.1). */
const MAX_IN_FLIGHT = 100
/** A few names are asked one after the other: a server that sends short answers in a row waits for a delayed acknowledgement. */
const NAMES_PER_QUERY_IN_FLIGHT = 20

/**
 * Those of `names` that are the apex of a zone of the server: it answers a query for the SOA record with authority. Only for
 * signed answers, of the view for this key. A server that answers no such query shows no zone. The ids begin with `firstId`.
 */
export const findApexes = async (
  peer: SignedPeer,
  names: readonly string[],
  firstId: number,
  onProgress: () => void = () => {},
): Promise<string[]> => {
  const { connection, key, now } = peer
  const left = names.filter(encodeName).values()
  const asked = new Map<number, { readonly name: string; readonly chain: Chain }>()
  const apexes: string[] = []
  let id = firstId
  const ask = () => {
    const { value: name } = left.next()
    if (name === undefined) return
    id = (id + 1) % 65_536
    const query = [encodeHeader(id, OPCODES.QUERY << 11, [1, 0, 0, 0]), encodeQuestion(name, TYPES.SOA)]
    const { message, mac } = sign(Buffer.concat(query), key, now())
    asked.set(id, { name, chain: startChain(mac) })
    connection.send(message)
  }
  for (let i = 0; i < Math.min(MAX_IN_FLIGHT, names.length / NAMES_PER_QUERY_IN_FLIGHT); i += 1) ask()
  while (asked.size > 0) {
    const octets = await connection.receive()
    const { id: answered, rcode, answers } = parseMessage(octets)
    const query = asked.get(answered)
    if (!query) continue
    asked.delete(answered)
    onProgress()
    ask()
    const isAuthoritative = (octets.readUInt16BE(2) & FLAGS.authoritative) !== 0
    const isApex = answers.some(({ type, name }) => type === TYPES.SOA && name.toLowerCase() === query.name)
    if (rcode !== 0 || !isAuthoritative || !isApex) continue
    if (verify(query.chain, octets, key, now()).kind === 'verified') apexes.push(query.name)
  }
  return apexes
}

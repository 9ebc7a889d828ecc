import { type Message, parseMessage, toRcodeName } from '../../wire/message.ts'
import { KeyRejectedError, ServerError } from './errors.ts'
import type { Connection } from './tcp.ts'
import { sign, startChain, type TsigKey, verify } from './tsig.ts'
import { isResponseTo } from './update-message.ts'

export interface SignedPeer {
  readonly connection: Connection
  readonly key: TsigKey
  /** Seconds since 1970. */
  readonly now: () => number
}

export interface SignedResponse {
  readonly octets: Buffer
  readonly message: Message
  /** This and all before it are authentic. Until then nothing of them may be believed. */
  readonly isVerified: boolean
}

/**
 * Said without a signature by Knot DNS of a zone that it does not have, and by PowerDNS of a wrong key or time as well,
 * for which RFC 8945 section 5.2 has TSIG errors. What may be the zone's trouble must not stop the others.
 */
const UNSIGNED_REJECTIONS = new Set(['NOTAUTH', 'REFUSED'])

/**
 * Sends `request` signed and yields the messages of its answer; who has the last one stops asking. Throws ServerTrouble
 * or MessageFault at one that is not an answer to it, or not rightly signed.
 */
export const exchangeSigned = async function* (
  peer: SignedPeer,
  request: Buffer,
): AsyncGenerator<SignedResponse, never> {
  const signed = sign(request, peer.key, peer.now())
  peer.connection.send(signed.message)
  let chain = startChain(signed.mac)
  for (;;) {
    const octets = await peer.connection.receive()
    const message = parseMessage(octets)
    if (!isResponseTo(message, request)) throw new ServerError('sent a response to another request')
    if (message.isTruncated) throw new ServerError('sent a truncated response')
    const verdict = verify(chain, octets, peer.key, peer.now())
    if (verdict.kind === 'rejected') {
      if (verdict.isKeyDenied) throw new KeyRejectedError(verdict.reason)
      const rcode = toRcodeName(message.rcode)
      const isOfZone = verdict.isUnsigned === true && UNSIGNED_REJECTIONS.has(rcode)
      const hint = isOfZone ? ': there is no such zone, or the TSIG key, its secret or a clock is wrong' : ''
      throw new ServerError(
        rcode === 'NOERROR' ? verdict.reason : `${verdict.reason}; it answered ${rcode}${hint}`,
        isOfZone,
      )
    }
    chain = verdict.chain
    yield { octets, message, isVerified: verdict.kind === 'verified' }
  }
}

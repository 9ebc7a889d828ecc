import { connect } from 'node:net'
import { frameMessage, type Message, parseMessage, toRcodeName, unframeMessage } from '../../wire/message.ts'
import { sign, startChain, type TsigKey, verify } from './tsig.ts'

/** The server cannot be used now. The text is for an operator; the provider returns it as `unavailable`. */
export class ServerError extends Error {
  /** According to the response, no other zone is affected. */
  readonly affectsZoneOnly: boolean

  /** It may be over at the next attempt. */
  readonly isTransient: boolean

  constructor(message: string, isOfZone = false, isTransient = false) {
    super(message)
    this.affectsZoneOnly = isOfZone
    this.isTransient = isTransient
  }
}

/** The server rejects the TSIG key, for everything or for this request. Knot DNS answers both with BADKEY. */
export class KeyRejectedError extends ServerError {}

/** The server does not have this zone, denies access to it, or cannot load or write it. The other RCODEs affect all zones. */
const ZONE_RCODES = new Set(['NOTAUTH', 'REFUSED', 'NXDOMAIN', 'NOTZONE', 'SERVFAIL'])

/** The error for a signed response with the RCODE `rcode`. */
export const toServerError = (what: string, rcode: string): ServerError =>
  new ServerError(`${what} (${rcode})`, ZONE_RCODES.has(rcode), rcode === 'SERVFAIL')

interface Connection {
  readonly send: (message: Buffer) => void
  /** The next message. Throws a `ServerError` if the connection fails or ends first. */
  readonly receive: () => Promise<Buffer>
  readonly close: () => void
}

const toErrorCode = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'no connection'

/**
 * Octets that wait for the caller. Knot DNS closes a connection on which it cannot write for 0.5 s, so a transfer is read
 * as fast as it arrives, up to this: about as much as a million record sets of one address each take.
 */
const MAX_QUEUED_BYTES = 32 * 1_024 * 1_024

/** DNS over TCP (RFC 1035 section 4.2.2). The connection lasts until `signal` aborts or `close` is called. */
export const openConnection = (server: { host: string; port: number }, signal: AbortSignal): Connection => {
  // An IPv6 address may be in brackets, as in a URL.
  const host = server.host.replace(/^\[(.*)\]$/, '$1')
  const socket = connect({ host, port: server.port, noDelay: true, signal })
  const chunks: Buffer[] = []
  let queuedBytes = 0
  let end: ServerError | undefined
  let notify = () => {}
  const finish = (error: ServerError) => {
    end ??= error
    notify()
  }
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    queuedBytes += chunk.length
    if (queuedBytes > MAX_QUEUED_BYTES) socket.pause()
    notify()
  })
  socket.on('error', error => {
    finish(new ServerError(signal.aborted ? 'did not respond in time' : `could not be reached (${toErrorCode(error)})`))
  })
  socket.on('close', () => finish(new ServerError('closed the connection before its response was complete')))
  let received: Buffer = Buffer.alloc(0)

  const readMore = async (): Promise<void> => {
    let chunk = chunks.shift()
    while (chunk === undefined) {
      if (end) throw end
      await new Promise<void>(resolve => {
        notify = resolve
      })
      chunk = chunks.shift()
    }
    received = Buffer.concat([received, chunk])
    queuedBytes -= chunk.length
    if (socket.isPaused() && queuedBytes < MAX_QUEUED_BYTES) socket.resume()
  }

  return {
    send: message => void socket.write(frameMessage(message)),
    receive: async () => {
      for (;;) {
        const next = unframeMessage(received)
        if (next) {
          received = next.rest
          return next.message
        }
        await readMore()
      }
    },
    close: () => socket.destroy(),
  }
}

export interface SignedPeer {
  readonly connection: Connection
  readonly key: TsigKey
  /** Seconds since 1970. */
  readonly now: () => number
}

export interface SignedResponse {
  readonly octets: Buffer
  readonly message: Message
  /** This message and all before it are authentic. While it is false, do not use their content. */
  readonly isVerified: boolean
}

/**
 * RCODEs that servers send unsigned where RFC 8945 section 5.2 has TSIG errors: Knot DNS for a zone that it does not
 * have, PowerDNS also for a wrong key or time. The cause may be this zone, so the other zones continue.
 */
const UNSIGNED_REJECTIONS = new Set(['NOTAUTH', 'REFUSED'])

/** RFC 1035 section 4.1.1: a response repeats the id and the opcode of its request. */
const isResponseTo = (message: { id: number; isResponse: boolean; opcode: number }, request: Buffer): boolean =>
  message.isResponse &&
  message.id === request.readUInt16BE(0) &&
  message.opcode === ((request.readUInt16BE(2) >> 11) & 0xf)

/**
 * Signs and sends `request`, and yields the messages of the response. The caller stops after the last one. Throws a
 * `ServerError` or a `FormatError` if a message does not belong to the request or its signature is not valid.
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
    const verification = verify(chain, octets, peer.key, peer.now())
    if (verification.kind === 'rejected') {
      if (verification.isKeyDenied) throw new KeyRejectedError(verification.reason)
      const rcode = toRcodeName(message.rcode)
      const isOfZone = verification.isUnsigned === true && UNSIGNED_REJECTIONS.has(rcode)
      const hint = isOfZone
        ? '. Check that the server has the zone, and check the TSIG key, its secret and the clocks'
        : ''
      throw new ServerError(
        rcode === 'NOERROR' ? verification.reason : `${verification.reason}; its RCODE is ${rcode}${hint}`,
        isOfZone,
      )
    }
    chain = verification.chain
    yield { octets, message, isVerified: verification.kind === 'verified' }
  }
}

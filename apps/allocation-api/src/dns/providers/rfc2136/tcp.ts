import { connect } from 'node:net'
import { ServerError } from './errors.ts'
import { largestMessage } from './wire.ts'

export interface Connection {
  readonly send: (message: Buffer) => void
  /** The next message. Throws ServerTrouble when there will be none. */
  readonly receive: () => Promise<Buffer>
  readonly close: () => void
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'no connection'

/** DNS over TCP (RFC 1035 section 4.2.2: each message after its length in two octets), until `signal` or `close`. */
export const openConnection = (server: { host: string; port: number }, signal: AbortSignal): Connection => {
  // An IPv6 address may be in brackets, as in a URL.
  const host = server.host.replace(/^\[(.*)\]$/, '$1')
  const socket = connect({ host, port: server.port, noDelay: true, signal })
  // Told by `receive`; without a listener an error between two calls would end the process.
  socket.on('error', () => {})
  const chunks: AsyncIterator<Buffer> = socket[Symbol.asyncIterator]()
  let held = Buffer.alloc(0)

  const more = async (): Promise<void> => {
    let next: IteratorResult<Buffer>
    try {
      next = await chunks.next()
    } catch (error) {
      if (signal.aborted) throw new ServerError('did not answer in time')
      throw new ServerError(`could not be reached (${codeOf(error)})`)
    }
    if (next.done) throw new ServerError('closed the connection before its answer was complete')
    held = Buffer.concat([held, next.value])
  }

  return {
    send: message => {
      if (message.length > largestMessage) throw new RangeError('a DNS message has 65535 octets at most')
      const length = Buffer.alloc(2)
      length.writeUInt16BE(message.length)
      socket.write(Buffer.concat([length, message]))
    },
    receive: async () => {
      while (held.length < 2 || held.length < 2 + held.readUInt16BE(0)) await more()
      const end = 2 + held.readUInt16BE(0)
      const message = held.subarray(2, end)
      held = held.subarray(end)
      return message
    },
    close: () => socket.destroy(),
  }
}

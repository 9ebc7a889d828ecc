import { connect } from 'node:net'
import { frameMessage, unframeMessage } from '../../wire/message.ts'
import { ServerError } from './errors.ts'

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
  let received: Buffer = Buffer.alloc(0)

  const more = async (): Promise<void> => {
    let next: IteratorResult<Buffer>
    try {
      next = await chunks.next()
    } catch (error) {
      if (signal.aborted) throw new ServerError('did not answer in time')
      throw new ServerError(`could not be reached (${codeOf(error)})`)
    }
    if (next.done) throw new ServerError('closed the connection before its answer was complete')
    received = Buffer.concat([received, next.value])
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
        await more()
      }
    },
    close: () => socket.destroy(),
  }
}

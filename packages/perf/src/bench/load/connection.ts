import { once } from 'node:events'
import { connect } from 'node:net'
import { type Answer, readAnswer } from './answer.ts'

export interface Request {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  readonly path: string
  /** Whole lines, each with its end of line. */
  readonly headers?: string
  readonly body?: string
}

export interface Connection {
  /** One at a time. Rejects when the connection breaks or nothing comes for a long time. */
  send(request: Request): Promise<Answer>
  close(): void
}

/** Longer than the service takes for anything. */
const SILENCE_MS = 30_000

const textOf = ({ method, path, headers = '', body }: Request): string =>
  body === undefined
    ? `${method} ${path} HTTP/1.1\r\nHost: bench\r\n${headers}\r\n`
    : `${method} ${path} HTTP/1.1\r\nHost: bench\r\n${headers}Content-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`

/**
 * One connection kept alive, over a plain socket: on two cores the generator's own work is taken from what it measures,
 * and every request here differs from the last. autocannon was not used because it keeps latencies in whole
 * milliseconds, which is more than a check takes; `node:http` costs about as much for a request as the service's own
 * HTTP side.
 */
export const openConnection = async (port: number): Promise<Connection> => {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  let pending: Pick<PromiseWithResolvers<Answer>, 'resolve' | 'reject'> | undefined
  let received: Buffer = Buffer.alloc(0)

  const fail = (detail: string) => {
    pending?.reject(new Error(detail))
    pending = undefined
    socket.destroy()
  }
  socket.setTimeout(SILENCE_MS, () => fail('no answer'))
  socket.on('error', error => fail(`connection: ${error.message}`))
  socket.on('close', () => fail('connection closed'))
  socket.on('data', chunk => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    const read = readAnswer(received)
    if (read.kind === 'broken') fail(read.detail)
    if (read.kind !== 'answer') return
    received = Buffer.alloc(0)
    pending?.resolve(read.answer)
    pending = undefined
  })

  return {
    send(request) {
      const { promise, ...settle } = Promise.withResolvers<Answer>()
      pending = settle
      if (socket.destroyed) fail('connection closed')
      else socket.write(textOf(request))
      return promise
    },
    close: () => socket.destroy(),
  }
}

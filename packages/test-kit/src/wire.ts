import { once } from 'node:events'
import { connect } from 'node:net'

/** The bearer token of the witness under test. */
export const TOKEN = 'token-of-region-a-0123456789abcdef'

export interface WireRequest {
  readonly method: 'GET' | 'PUT' | 'DELETE'
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface WireAnswer {
  readonly status: number
  /** The entity tag as it came; empty: there was none. */
  readonly tag: string
  readonly text: string
}

export interface Wire extends Disposable {
  /** One at a time. The bytes are with the kernel when it returns. Rejects when the connection breaks. */
  readonly send: (request: WireRequest) => Promise<WireAnswer>
}

/** Longer than the witness takes for anything that is not a wait. */
const SILENCE_MS = 20_000
const END_OF_HEAD = '\r\n\r\n'

const textOf = ({ method, path, headers = {}, body = '' }: WireRequest): string => {
  let head = `${method} ${path} HTTP/1.1\r\nHost: witness\r\nAuthorization: Bearer ${TOKEN}\r\n`
  for (const [name, value] of Object.entries(headers)) head += `${name}: ${value}\r\n`
  if (method === 'PUT') head += `Content-Length: ${Buffer.byteLength(body)}\r\n`
  return `${head}\r\n${body}`
}

/** The answer that the bytes are, once they are all there; what is neither is an error. */
const answerOf = (bytes: string): WireAnswer | undefined => {
  const headEnd = bytes.indexOf(END_OF_HEAD)
  if (headEnd < 0) return undefined
  const head = bytes.slice(0, headEnd)
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1])
  const isEmpty = status === 204 || status === 304
  const length = isEmpty ? 0 : Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1])
  const missing = headEnd + END_OF_HEAD.length + length - bytes.length
  // NaN, of a status or a length that is not there, ends here too.
  if (!(missing >= 0)) throw new Error(`not understood: ${head}`)
  if (missing > 0) return undefined
  const tag = /\r\netag: *([^\r]*)/i.exec(head)?.[1] ?? ''
  return { status, tag, text: bytes.slice(headEnd + END_OF_HEAD.length) }
}

/**
 * One connection kept alive, over a plain socket. Two cores carry the senders and workerd: a request of `node:http` costs
 * about as much as its answer, and a race needs all its requests on their way before the first is answered.
 */
export const openWire = async (port: number): Promise<Wire> => {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  await once(socket, 'connect')
  let pending: Pick<PromiseWithResolvers<WireAnswer>, 'resolve' | 'reject'> | undefined
  let received = ''

  const fail = (error: unknown) => {
    pending?.reject(error)
    pending = undefined
    socket.destroy()
  }
  socket.setTimeout(SILENCE_MS, () => pending && fail(new Error('no answer')))
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('the connection closed')))
  // The witness writes ASCII only: a character is a byte.
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => {
    received += chunk
    try {
      const answer = answerOf(received)
      if (!answer) return
      received = ''
      pending?.resolve(answer)
      pending = undefined
    } catch (error) {
      fail(error)
    }
  })

  return {
    send: request => {
      const { promise, ...settle } = Promise.withResolvers<WireAnswer>()
      pending = settle
      if (socket.destroyed) fail(new Error('the connection is closed'))
      else socket.write(textOf(request), 'latin1')
      return promise
    },
    [Symbol.dispose]: () => socket.destroy(),
  }
}

export const openWires = (port: number, count: number): Promise<Wire[]> =>
  Promise.all(Array.from({ length: count }, () => openWire(port)))

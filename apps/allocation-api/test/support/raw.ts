import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export interface RawAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

export interface RawRequest {
  readonly method?: string
  readonly path: string
  readonly headers?: readonly string[]
  readonly body?: string | Uint8Array
  /** Sent in chunks (RFC 9112 section 7.1) and without Content-Length. */
  readonly chunked?: boolean
}

const CRLF = '\r\n'

const chunksOf = (body: Buffer): Buffer[] => {
  const chunks: Buffer[] = []
  for (let start = 0; start < body.length; start += 10_000) {
    const chunk = body.subarray(start, start + 10_000)
    chunks.push(Buffer.from(chunk.length.toString(16) + CRLF), chunk, Buffer.from(CRLF))
  }
  return [...chunks, Buffer.from(`0${CRLF}${CRLF}`)]
}

/** The bytes of a request, each part exactly as given. Header values are Latin-1, a byte a character. */
export const bytesOf = ({ method = 'GET', path, headers = [], body, chunked = false }: RawRequest): Buffer => {
  const content = body === undefined ? Buffer.alloc(0) : Buffer.from(body as string)
  const framing = chunked
    ? ['Transfer-Encoding: chunked']
    : body === undefined
      ? []
      : [`Content-Length: ${content.length}`]
  const head = [`${method} ${path} HTTP/1.1`, 'Host: localhost', ...framing, ...headers, '', ''].join(CRLF)
  return Buffer.concat([Buffer.from(head, 'latin1'), ...(chunked ? chunksOf(content) : [content])])
}

const dechunk = (bytes: Buffer): { content: Buffer; end: number } | null => {
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const line = bytes.indexOf(CRLF, at)
    if (line < 0) return null
    const size = Number.parseInt(bytes.toString('latin1', at, line), 16)
    const end = line + 2 + size + 2
    if (bytes.length < end) return null
    if (size === 0) return { content: Buffer.concat(parts), end }
    parts.push(bytes.subarray(line + 2, line + 2 + size))
    at = end
  }
}

/** One answer at the front of `bytes` and what follows it; null when it is not whole yet. */
const takeAnswer = (bytes: Buffer, isHead: boolean, ended: boolean): { answer: RawAnswer; rest: Buffer } | null => {
  const split = bytes.indexOf(CRLF + CRLF)
  if (split < 0) return null
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, split).split(CRLF)
  const status = Number(statusLine.split(' ')[1])
  const headers = new Headers(lines.map(line => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]))
  const after = bytes.subarray(split + 4)
  if (status < 200) return takeAnswer(after, isHead, ended)
  const whole = (text: Buffer, end: number) => ({
    answer: { status, headers, text: text.toString() },
    rest: after.subarray(end),
  })
  if (isHead || status === 204 || status === 304) return whole(Buffer.alloc(0), 0)
  if (headers.get('transfer-encoding') === 'chunked') {
    const chunks = dechunk(after)
    return chunks && whole(chunks.content, chunks.end)
  }
  const length = headers.get('content-length')
  if (length === null) return ended ? whole(after, after.length) : null
  return after.length >= Number(length) ? whole(after.subarray(0, Number(length)), Number(length)) : null
}

/** A connection that is kept alive, on which exactly the given bytes are sent. */
export class RawConnection {
  #bytes: Buffer = Buffer.alloc(0)
  #ended = false
  readonly #socket: Socket

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('data', chunk => {
      this.#bytes = Buffer.concat([this.#bytes, chunk])
    })
    socket.on('close', () => {
      this.#ended = true
    })
    // A reset ends the connection like any other end: what had arrived before counts.
    socket.on('error', () => {})
  }

  static async open(port: number): Promise<RawConnection> {
    const socket = connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return new RawConnection(socket)
  }

  get isOpen(): boolean {
    return !this.#ended && this.#socket.writable
  }

  /** Sends, and reads one answer. Rejects when the connection ends without one. */
  async send(bytes: Buffer): Promise<RawAnswer> {
    this.#socket.write(bytes)
    return this.read(bytes.toString('latin1', 0, 5) === 'HEAD ')
  }

  async read(isHead = false): Promise<RawAnswer> {
    for (;;) {
      const taken = takeAnswer(this.#bytes, isHead, this.#ended)
      if (taken) {
        this.#bytes = taken.rest
        return taken.answer
      }
      if (this.#ended) throw new Error(`the connection ended after ${JSON.stringify(this.#bytes.toString('latin1'))}`)
      const looked = new AbortController()
      const { signal } = looked
      await Promise.race([once(this.#socket, 'data', { signal }), once(this.#socket, 'close', { signal })])
      looked.abort()
    }
  }

  close(): void {
    this.#socket.destroy()
  }
}

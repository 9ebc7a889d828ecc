import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

const CRLF = '\r\n'
const END_OF_HEAD = '\r\n\r\n'
const MAX_CHUNK_BYTES = 10_000

export interface HttpRequest {
  readonly method?: string
  /** The request target, exactly as given. */
  readonly path: string
  /** Whole lines without CRLF, Latin-1. `Host` and the framing are added unless `Host` is among them. */
  readonly headers?: readonly string[]
  readonly body?: string | Uint8Array
  /** Sends the body in chunks (RFC 9112 section 7.1), without Content-Length. */
  readonly chunked?: boolean
}

/** The chunked coding of a body, in at least two chunks if it has two bytes. */
export const encodeChunks = (body: Buffer): Buffer => {
  const chunks: Buffer[] = []
  const size = Math.max(1, Math.min(MAX_CHUNK_BYTES, Math.ceil(body.length / 2)))
  for (let start = 0; start < body.length; start += size) {
    const chunk = body.subarray(start, start + size)
    chunks.push(Buffer.from(chunk.length.toString(16) + CRLF), chunk, Buffer.from(CRLF))
  }
  return Buffer.concat([...chunks, Buffer.from(`0${CRLF}${CRLF}`)])
}

export const encodeRequest = ({ method = 'GET', path, headers = [], body, chunked = false }: HttpRequest): Buffer => {
  const content = body === undefined ? Buffer.alloc(0) : Buffer.from(body as string)
  const host = headers.some(line => /^host:/i.test(line)) ? [] : ['Host: localhost']
  const framing = chunked
    ? ['Transfer-Encoding: chunked']
    : body === undefined
      ? []
      : [`Content-Length: ${content.length}`]
  const head = [`${method} ${path} HTTP/1.1`, ...host, ...framing, ...headers, '', ''].join(CRLF)
  return Buffer.concat([Buffer.from(head, 'latin1'), chunked ? encodeChunks(content) : content])
}

export class HttpResponse {
  readonly status: number
  readonly body: Buffer
  /** The server closes the connection after this response. */
  readonly isLast: boolean
  readonly #headerLines: string
  #headers: ReadonlyMap<string, string> | undefined

  constructor(status: number, headerLines: string, body: Buffer, isLast: boolean) {
    this.status = status
    this.body = body
    this.isLast = isLast
    this.#headerLines = headerLines
  }

  /** Names in lower case. The values of a repeated name are joined with a comma. */
  get headers(): ReadonlyMap<string, string> {
    this.#headers ??= parseHeaders(this.#headerLines)
    return this.#headers
  }

  get text(): string {
    return this.body.toString()
  }
}

export type ParseResult =
  /** `end`: the offset of the first byte after the response. */
  | { readonly kind: 'response'; readonly response: HttpResponse; readonly end: number }
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'malformed'; readonly detail: string }
  /** The connection ended inside the response. */
  | { readonly kind: 'truncated' }

export interface ParseOptions {
  /** The request was a HEAD: the response has no body. */
  readonly isHead?: boolean
  /** No further bytes will come, which ends a body without a length. */
  readonly isEnded?: boolean
  /** Returns interim responses (1xx) too, instead of skipping them. */
  readonly withInterim?: boolean
}

const INCOMPLETE: ParseResult = { kind: 'incomplete' }
const malformed = (detail: string): ParseResult => ({ kind: 'malformed', detail })
const HEADER_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*$/s
const HEADER_LINES = /^(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[^\r\n]*)*$/

const parseHeaders = (lines: string): ReadonlyMap<string, string> => {
  const headers = new Map<string, string>()
  for (const line of lines.split(CRLF)) {
    const [, name = '', value = ''] = HEADER_LINE.exec(line) ?? []
    const previous = headers.get(name.toLowerCase())
    if (name !== '') headers.set(name.toLowerCase(), previous === undefined ? value : `${previous}, ${value}`)
  }
  return headers
}

/** All values of a header, without building the map: a load generator parses many responses. */
const readFieldValues = (lines: string, name: RegExp): string =>
  Array.from(lines.matchAll(name), ([, value]) => value).join(', ')
const CONTENT_LENGTH = /\r\ncontent-length:[ \t]*([^\r]*?)[ \t]*(?=\r|$)/gi
const TRANSFER_ENCODING = /\r\ntransfer-encoding:[ \t]*([^\r]*?)[ \t]*(?=\r|$)/gi
const CONNECTION_CLOSE = /\r\nconnection:[^\r]*\bclose\b/i

/** The content of a chunked body that starts at `from`, and where it ends. */
const decodeChunks = (bytes: Buffer, from: number): { content: Buffer; end: number } | 'incomplete' | 'malformed' => {
  const chunks: Buffer[] = []
  for (let at = from; ; ) {
    const lineEnd = bytes.indexOf(CRLF, at)
    if (lineEnd < 0) return 'incomplete'
    const line = bytes.toString('latin1', at, lineEnd)
    if (!/^[0-9a-f]{1,8}$/i.test(line)) return 'malformed'
    const size = Number.parseInt(line, 16)
    const end = lineEnd + 2 + size
    if (bytes.length < end + 2) return 'incomplete'
    if (bytes[end] !== 0x0d || bytes[end + 1] !== 0x0a) return 'malformed'
    if (size === 0) return { content: Buffer.concat(chunks), end: end + 2 }
    chunks.push(bytes.subarray(lineEnd + 2, end))
    at = end + 2
  }
}

/** Parses the first response in `bytes` from `from` on. The length of its body follows RFC 9112 section 6.3. */
export const parseResponse = (bytes: Buffer, options: ParseOptions = {}, from = 0): ParseResult => {
  const { isHead = false, isEnded = false, withInterim = false } = options
  const headEnd = bytes.indexOf(END_OF_HEAD, from)
  if (headEnd < 0) return isEnded && bytes.length > from ? { kind: 'truncated' } : INCOMPLETE
  const head = bytes.toString('latin1', from, headEnd)
  const lineEnd = head.indexOf(CRLF)
  const statusLine = lineEnd < 0 ? head : head.slice(0, lineEnd)
  const lines = lineEnd < 0 ? '' : head.slice(lineEnd)
  const [, version, code] = /^HTTP\/1\.([01]) (\d{3})(?: |$)/.exec(statusLine) ?? []
  if (code === undefined) return malformed(`a response that begins with ${JSON.stringify(statusLine.slice(0, 40))}`)
  const status = Number(code)
  const bodyStart = headEnd + END_OF_HEAD.length
  if (!HEADER_LINES.test(lines)) return malformed(`a malformed header in ${JSON.stringify(lines.slice(0, 200))}`)
  const isInterim = status < 200 && status !== 101
  if (isInterim && !withInterim) return parseResponse(bytes, options, bodyStart)

  const closes = version === '0' || CONNECTION_CLOSE.test(lines)
  const complete = (body: Buffer, end: number, isLast = closes): ParseResult => ({
    kind: 'response',
    response: new HttpResponse(status, lines, body, isLast),
    end,
  })
  if (isHead || status < 200 || status === 204 || status === 304) return complete(Buffer.alloc(0), bodyStart)
  if (readFieldValues(lines, TRANSFER_ENCODING).toLowerCase() === 'chunked') {
    const chunks = decodeChunks(bytes, bodyStart)
    if (chunks === 'malformed') return malformed('a malformed chunk')
    if (chunks === 'incomplete') return isEnded ? { kind: 'truncated' } : INCOMPLETE
    return complete(chunks.content, chunks.end)
  }
  const length = readFieldValues(lines, CONTENT_LENGTH)
  if (length === '') return isEnded ? complete(bytes.subarray(bodyStart), bytes.length, true) : INCOMPLETE
  if (!/^\d+$/.test(length)) return malformed(`a Content-Length of ${JSON.stringify(length)}`)
  const end = bodyStart + Number(length)
  if (bytes.length >= end) return complete(bytes.subarray(bodyStart, end), end)
  return isEnded ? { kind: 'truncated' } : INCOMPLETE
}

class HttpReadError extends Error {
  /** `closed`: the connection ended before the first byte of a response. */
  readonly kind: 'malformed' | 'truncated' | 'closed' | 'timeout'

  constructor(kind: HttpReadError['kind'], detail: string) {
    super(detail)
    this.name = 'HttpReadError'
    this.kind = kind
  }
}

export interface ReadOptions extends Omit<ParseOptions, 'isEnded'> {
  /** Milliseconds for the whole response. */
  readonly timeoutMs?: number
}

interface PendingRead {
  readonly options: ReadOptions
  readonly timer: NodeJS.Timeout
  readonly resolve: (response: HttpResponse) => void
  readonly reject: (error: HttpReadError) => void
}

/** Longer than a service takes for any response, long polls included. */
const DEFAULT_TIMEOUT_MS = 30_000

/**
 * A keep-alive connection on which a test sends exactly the bytes that it chooses. It is a plain socket because a
 * request of `node:http` costs about as much as the service's response to it, and because invalid bytes are tests too.
 */
export class HttpConnection implements Disposable {
  readonly socket: Socket
  #received: Buffer = Buffer.alloc(0)
  #ended: string | undefined
  #pending: PendingRead | undefined

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', chunk => {
      this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk])
      this.#deliver()
    })
    const end = (reason: string) => {
      this.#ended ??= reason
      this.#deliver()
    }
    // A reset ends the connection like any other end: what arrived before it counts.
    socket.on('error', error => end(error.message))
    socket.on('end', () => end('the server closed the connection'))
    socket.on('close', () => end('the connection was closed'))
  }

  static async open(port: number): Promise<HttpConnection> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    const connection = new HttpConnection(socket)
    await once(socket, 'connect')
    return connection
  }

  get isOpen(): boolean {
    return this.#ended === undefined && this.socket.writable
  }

  /** What arrived and was not read yet, as Latin-1 text. */
  get unread(): string {
    return this.#received.toString('latin1')
  }

  write(bytes: string | Uint8Array): void {
    if (typeof bytes === 'string') this.socket.write(bytes, 'latin1')
    else this.socket.write(bytes)
  }

  /** Writes a request and reads its response. The bytes are in the kernel's buffer when this returns. */
  send(bytes: string | Buffer, options: ReadOptions = {}): Promise<HttpResponse> {
    this.write(bytes)
    const start = typeof bytes === 'string' ? bytes.slice(0, 5) : bytes.toString('latin1', 0, 5)
    return this.read({ isHead: start === 'HEAD ', ...options })
  }

  /** The next response. One read at a time; rejects with HttpReadError. */
  read(options: ReadOptions = {}): Promise<HttpResponse> {
    if (this.#pending) throw new Error('a read is pending on this connection')
    const { promise, resolve, reject } = Promise.withResolvers<HttpResponse>()
    const timer = setTimeout(
      () => this.#fail('timeout', 'no complete response in time'),
      options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    )
    this.#pending = { options, timer, resolve, reject }
    this.#deliver()
    return promise
  }

  close(): void {
    this.socket.destroy()
  }

  [Symbol.dispose](): void {
    this.close()
  }

  #deliver(): void {
    const pending = this.#pending
    if (!pending) return
    const isEnded = this.#ended !== undefined
    const parsed = parseResponse(this.#received, { ...pending.options, isEnded })
    if (parsed.kind === 'response') {
      this.#received = this.#received.subarray(parsed.end)
      this.#pending = undefined
      clearTimeout(pending.timer)
      pending.resolve(parsed.response)
    } else if (parsed.kind === 'malformed') this.#fail('malformed', parsed.detail)
    else if (isEnded) this.#fail(parsed.kind === 'truncated' ? 'truncated' : 'closed', `no response: ${this.#ended}`)
  }

  #fail(kind: HttpReadError['kind'], detail: string): void {
    const pending = this.#pending
    this.#pending = undefined
    clearTimeout(pending?.timer)
    const received = this.unread.slice(0, 500)
    pending?.reject(
      new HttpReadError(kind, received === '' ? detail : `${detail}; received ${JSON.stringify(received)}`),
    )
  }
}

export const openConnections = (port: number, count: number): Promise<HttpConnection[]> =>
  Promise.all(Array.from({ length: count }, () => HttpConnection.open(port)))

import { randomUUID } from 'node:crypto'
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  type Server,
  ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { Duplex } from 'node:stream'
import { getRequestListener } from '@hono/node-server'

/**
 * What every response has unless it sets the header itself: no cache keeps data, which a token may protect, and no browser
 * takes a response for a page, or shows it in one.
 */
const DEFAULT_HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}

const addDefaults = (headers: OutgoingHttpHeaders = {}): OutgoingHttpHeaders => {
  const all: OutgoingHttpHeaders = { ...DEFAULT_HEADERS }
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase()
    if (lower !== name) delete all[lower]
    all[name] = value
  }
  return all
}

/**
 * A response that has the headers above, and `X-Request-Id` if `requestId` is set. With `setHeader`, Node would copy every other
 * header of the response too.
 */
class IdentifiedResponse<Received extends IncomingMessage = IncomingMessage> extends ServerResponse<Received> {
  requestId: string | null = null

  override writeHead(
    status: number,
    first?: string | OutgoingHttpHeaders | OutgoingHttpHeader[],
    second?: OutgoingHttpHeaders | OutgoingHttpHeader[],
  ): this {
    // Hono's adapter passes a plain object, or nothing.
    if (typeof first !== 'string' && !Array.isArray(first)) {
      const headers = addDefaults(first)
      if (this.requestId !== null) headers['X-Request-Id'] = this.requestId
      return super.writeHead(status, headers)
    }
    if (this.requestId !== null) this.setHeader('X-Request-Id', this.requestId)
    return typeof first === 'string' ? super.writeHead(status, first, second) : super.writeHead(status, first)
  }
}

/** A Hono app, whatever its environment. */
export interface App {
  fetch(request: Request, env: object): Response | Promise<Response>
}

/** The body of an error response. */
interface Problem {
  readonly error: string
  readonly detail: string
}

const KEEP_ALIVE_MS = 75_000

export interface ListenOptions {
  /** The error code of a request that is not valid HTTP. */
  readonly malformedRequestCode: string
  /** The IP address to bind to. Absent or null: every address of the machine. */
  readonly address?: string | null
  /** How long a connection without a request stays open, at least. Proxies and clients should close it earlier. */
  readonly keepAliveMs?: number
}

export interface HttpServer {
  readonly port: number
  /** Replaces the app. Requests in progress are completed by the one before. */
  serve(app: App): void
  /** Stops accepting connections, lets requests in progress finish, and closes the remaining ones after `graceMs`. */
  close(graceMs: number): Promise<void>
}

/** The detail for a request that does not reach the routes (RFC 9112). */
const MALFORMED_REQUEST = 'Malformed HTTP/1.1 request.'

const toHeaders = (body: string): Record<string, string> => ({
  'Content-Type': 'application/json',
  'Content-Length': String(Buffer.byteLength(body)),
  'X-Request-Id': randomUUID(),
  ...DEFAULT_HEADERS,
})

const sendRaw = (socket: Duplex, status: number, problem: Problem, extraHeaders: Record<string, string> = {}): void => {
  const body = JSON.stringify(problem)
  const headers = Object.entries({ ...toHeaders(body), ...extraHeaders, Connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${headers.join('')}\r\n${body}`)
}

/** Errors of Node's parser, by code. */
const PARSER_ERRORS: ReadonlyMap<string, readonly [status: number, detail: string]> = new Map([
  ['HPE_HEADER_OVERFLOW', [431, 'The header fields must not be larger than 16 KiB.']],
  ['ERR_HTTP_REQUEST_TIMEOUT', [408, 'The request was not received in time.']],
])

type Exchange = readonly [request: IncomingMessage, response: ServerResponse]

const isOpen = ([, response]: Exchange): boolean => !response.closed

/**
 * The requests of each connection, in their order, that may have no complete response yet. A listener for the end of each
 * response would be a large part of the cost of a small request, so the complete ones are removed at the next request.
 */
const trackExchanges = (server: Server) => {
  const exchanges = new WeakMap<Duplex, Exchange[]>()
  server.on('connection', socket => exchanges.set(socket, []))
  return {
    add(request: IncomingMessage, response: ServerResponse): void {
      const ofConnection = exchanges.get(request.socket)
      while (ofConnection?.[0] && !isOpen(ofConnection[0])) ofConnection.shift()
      ofConnection?.push([request, response])
    },
    listOpen: (socket: Duplex): readonly Exchange[] => (exchanges.get(socket) ?? []).filter(isOpen),
  }
}

/** Responds to requests for which Node alone would send no body, or no response. */
const handleProtocolErrors = (
  server: Server,
  exchanges: Pick<ReturnType<typeof trackExchanges>, 'listOpen'>,
  toMalformed: (detail: string) => Problem,
): void => {
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // Only the malformed request may get this response: a valid one before it may still be waiting for its own.
    const canRespond = exchanges
      .listOpen(socket)
      .every(([request, response]) => !request.complete && !response.headersSent)
    if (error.code === 'ECONNRESET' || !socket.writable || !canRespond) return socket.destroy()
    const [status, detail] = PARSER_ERRORS.get(error.code ?? '') ?? [400, MALFORMED_REQUEST]
    return sendRaw(socket, status, toMalformed(detail))
  })
  server.on('checkExpectation', (_, response) => {
    const body = JSON.stringify(toMalformed('Only "Expect: 100-continue" is supported.'))
    response.writeHead(417, toHeaders(body)).end(body)
  })
  server.on('connect', (_, socket) => {
    // A 405 must list the allowed methods (RFC 9110 section 15.5.6). A proxy target has none.
    sendRaw(socket, 405, { error: 'method-not-allowed', detail: 'This server is not a proxy.' }, { Allow: '' })
  })
}

/** RFC 9112 section 3.2 requires a 400. Node and the routes would each use one of them. */
const hasSeveralHosts = ({ rawHeaders }: IncomingMessage): boolean => {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.length === 4 && rawHeaders[i]?.toLowerCase() === 'host') count += 1
  }
  return count > 1
}

/** Listens on a port. Rejects with the system's error if it cannot. */
export const listen = async (
  app: App,
  port: number,
  { malformedRequestCode, address: bindAddress, keepAliveMs = KEEP_ALIVE_MS }: ListenOptions,
): Promise<HttpServer> => {
  const toMalformed = (detail: string): Problem => ({ error: malformedRequestCode, detail })
  let current = app
  const listener = getRequestListener((request, env) => current.fetch(request, env), {
    // Only for malformed requests, such as one without Host. The routes handle their own errors.
    errorHandler: () => {
      const body = JSON.stringify(toMalformed(MALFORMED_REQUEST))
      return new Response(body, { status: 400, headers: toHeaders(body) })
    },
  })
  // No stream for a body that no request header announces.
  const options = { ServerResponse: IdentifiedResponse, requireHostHeader: false, optimizeEmptyRequests: true }
  const server = createServer(options, (request, response) => {
    exchanges.add(request, response)
    // Host is required only since HTTP/1.1 (RFC 9112 section 3.2), and no route depends on it.
    if (request.httpVersion === '1.0') request.headers.host ??= 'localhost'
    if (hasSeveralHosts(request)) {
      const body = JSON.stringify(toMalformed('A request must have one Host header.'))
      response.writeHead(400, { ...toHeaders(body), Connection: 'close' }).end(body)
      return
    }
    return listener(request, response)
  })
  server.keepAliveTimeout = keepAliveMs
  const exchanges = trackExchanges(server)
  handleProtocolErrors(server, exchanges, toMalformed)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen({ port, host: bindAddress ?? undefined }, resolve)
  await promise
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : port,
    serve(next) {
      current = next
    },
    async close(graceMs) {
      const closed = new Promise<void>(resolveClosed => server.close(() => resolveClosed()))
      // A keep-alive connection is idle only between requests, so idle connections are closed repeatedly.
      const idle = setInterval(() => server.closeIdleConnections(), 50)
      const forceClose = setTimeout(() => server.closeAllConnections(), graceMs)
      await closed
      clearInterval(idle)
      clearTimeout(forceClose)
    },
  }
}

interface ListenTarget {
  /** The environment variable of the port. */
  readonly variable: string
  readonly port: number
  /** The environment variable of the address; absent: it cannot be set. */
  readonly addressVariable?: string
}

/** What an operator does about a port or an address that a server cannot bind to. */
export const toListenError = (
  error: NodeJS.ErrnoException,
  { variable, port, addressVariable = variable }: ListenTarget,
): Error => {
  const code = error.code ?? error.name
  if (code === 'EADDRINUSE') {
    return new Error(
      `${variable}: port ${port} is in use; stop the process that has it, or set another port in ${variable} (${code})`,
    )
  }
  if (code === 'EADDRNOTAVAIL') {
    return new Error(`${addressVariable}: this machine does not have the address; correct ${addressVariable} (${code})`)
  }
  if (code === 'EACCES') {
    return new Error(
      `${variable}: only root may listen on port ${port}; set a port from 1024 on in ${variable}, or permit it (CAP_NET_BIND_SERVICE) (${code})`,
    )
  }
  return new Error(`${variable}: cannot listen on port ${port}; correct ${variable} (${code})`)
}

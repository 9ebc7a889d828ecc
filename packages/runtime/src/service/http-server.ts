import { randomInt, randomUUID } from 'node:crypto'
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  type Server,
  ServerResponse,
  STATUS_CODES,
} from 'node:http'
import { totalmem } from 'node:os'
import type { Duplex } from 'node:stream'
import { setImmediate as endOfTurn } from 'node:timers/promises'
import { getRequestListener } from '@hono/node-server'
import { admitConnections } from './admit-connections.ts'
import { createReceivedRequest, hasBody, type ReceivedRequest } from './received-request.ts'
import { SharedLimit, type SharedLimitOptions } from './shared-limit.ts'

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
  for (const name in headers) {
    const lower = name.toLowerCase()
    if (lower !== name) delete all[lower]
    all[name] = headers[name]
  }
  return all
}

/** How long a client can still send after an early response. Its system would drop the response with a connection that ends. */
const LINGER_MS = 2_000

/** Ends a connection, and discards what its client still sends. */
const linger = (socket: Duplex): void => {
  if (socket.writableEnded) return
  socket.end()
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}

/**
 * A response that has the headers above, and `X-Request-Id` if `requestId` is set. With `setHeader`, Node would copy every other
 * header of the response too. A response to a request whose body has not arrived is the last of its connection.
 */
class IdentifiedResponse<Received extends IncomingMessage = IncomingMessage> extends ServerResponse<Received> {
  requestId: string | null = null

  #endEarly(): void {
    if (this.req.complete || !hasBody(this.req)) return
    this.shouldKeepAlive = false
    ;(this.req as unknown as ReceivedRequest).discardBody()
    const { socket } = this
    // What Node calls at the end of the response.
    if (socket) socket.destroySoon = () => linger(socket)
  }

  override writeHead(
    status: number,
    first?: string | OutgoingHttpHeaders | OutgoingHttpHeader[],
    second?: OutgoingHttpHeaders | OutgoingHttpHeader[],
  ): this {
    this.#endEarly()
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

export interface ServerLimits {
  readonly connections: SharedLimitOptions
  /** Of bodies of which a part has not arrived. */
  readonly unfinishedBytes: SharedLimitOptions
}

const KIB = 1_024
const MIB = 1_024 * KIB
/** What a connection can hold at most, with a request whose head is as large as can be. */
const CONNECTION_BYTES = 128 * KIB
const MAX_CONNECTIONS = 20_480
const MIN_CONNECTIONS = 256
const MAX_UNFINISHED_BYTES = 64 * MIB

/** `share`: the part of everything that one client address can have. `part`: that of a listener beside others. */
export const toServerLimits = (memoryBytes: number, share: number, part = 1): ServerLimits => {
  const connections = Math.min(MAX_CONNECTIONS, Math.max(MIN_CONNECTIONS, Math.floor(memoryBytes / CONNECTION_BYTES)))
  const bytes = Math.min(MAX_UNFINISHED_BYTES, Math.floor(memoryBytes / 16))
  const divide = (total: number) => ({ total: total * part, perClient: total * part * share })
  return { connections: divide(connections), unfinishedBytes: divide(bytes) }
}

/** What this process may use: the limit of its container, or the memory of the machine. */
export const readMemoryLimit = (): number =>
  Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)

export interface ListenOptions {
  /** The error code of a request that is not valid HTTP. */
  readonly malformedRequestCode: string
  /** The IP address to bind to. Absent or null: every address of the machine. */
  readonly address?: string | null
  /** Absent: those of a server that has the machine to itself and one client. */
  readonly limits?: ServerLimits
  /** The paths that respond although there are too many connections. */
  readonly probePaths?: readonly string[]
  /** Whose share a connection counts in; null: nobody's, because it is a proxy's. Absent: that of its address. */
  readonly toConnectionClient?: (address: string) => string | null
  /** The same of a body. */
  readonly toClient?: (request: IncomingMessage) => string | null
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
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${headers.join('')}\r\n${body}`)
  socket.resume()
  linger(socket)
}

/** Errors of Node's parser, by code. */
const PARSER_ERRORS: ReadonlyMap<string, readonly [status: number, detail: string]> = new Map([
  ['HPE_HEADER_OVERFLOW', [431, 'The header fields must not be larger than 16 KiB.']],
])

const REQUEST_TIMEOUT: Problem = {
  error: 'request-timeout',
  detail: 'The request was not received in time; send it again.',
}
const OVERLOADED: Problem = {
  error: 'overloaded',
  detail: 'The service has too many connections, in total or from your address; close some, or retry later.',
}
/** Connections come and go. Clients that were turned away together do not all return in the same second. */
const toOverloadedRetryAfter = (): string => String(randomInt(1, 4))

type Exchange = readonly [request: IncomingMessage, response: ServerResponse]

const isOpen = ([, response]: Exchange): boolean => !response.closed

/**
 * The requests of each connection, in their order, that may have no complete response yet. A listener for the end of each
 * response would be a large part of the cost of a small request, so the complete ones are removed at the next request.
 */
const trackExchanges = () => {
  const exchanges = new WeakMap<Duplex, Exchange[]>()
  return {
    /** How many there are now. */
    add(request: IncomingMessage, response: ServerResponse): number {
      const { socket } = request
      const ofConnection = exchanges.get(socket)
      if (!ofConnection) {
        exchanges.set(socket, [[request, response]])
        return 1
      }
      while (ofConnection[0] && !isOpen(ofConnection[0])) ofConnection.shift()
      return ofConnection.push([request, response])
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
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return sendRaw(socket, 408, REQUEST_TIMEOUT)
    const [status, detail] = PARSER_ERRORS.get(error.code ?? '') ?? [400, MALFORMED_REQUEST]
    return sendRaw(socket, status, toMalformed(detail))
  })
  server.on('checkExpectation', (_, response) => {
    const body = JSON.stringify(toMalformed('Only "Expect: 100-continue" is supported.'))
    response.writeHead(417, toHeaders(body)).end(body)
  })
  server.on('connect', (_, socket) => {
    // Node has removed its own, and an error without a listener would end the process.
    socket.on('error', () => socket.destroy())
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

/** For the head of a request, and for a body of limited size. */
const RECEIVE_TIMEOUT_MS = 10_000
/** Requests of one connection that have no complete response yet. */
const MAX_PIPELINED = 4

/**
 * Connections that the kernel keeps for the server: as many as `net.core.somaxconn` permits. Beyond them, a client tries again
 * after a second.
 */
const BACKLOG = 65_535

/** What came with the head of the request is parsed before the response is sent, so that the connection can be kept. */
const respondAfterBody = async (
  request: IncomingMessage,
  responding: Response | Promise<Response>,
): Promise<Response> => {
  const response = await responding
  if (!request.complete) await endOfTurn()
  return response
}

/** Listens on a port. Rejects with the system's error if it cannot. */
export const listen = async (
  app: App,
  port: number,
  {
    malformedRequestCode,
    address: bindAddress,
    keepAliveMs = KEEP_ALIVE_MS,
    limits = toServerLimits(readMemoryLimit(), 1),
    probePaths = [],
    toConnectionClient = address => address,
    toClient = request => request.socket.remoteAddress ?? null,
  }: ListenOptions,
): Promise<HttpServer> => {
  const toMalformed = (detail: string): Problem => ({ error: malformedRequestCode, detail })
  let current = app
  const respond = (request: Request, env: { readonly incoming: object }): Response | Promise<Response> => {
    const response = current.fetch(request, env)
    const incoming = env.incoming as IncomingMessage
    return hasBody(incoming) ? respondAfterBody(incoming, response) : response
  }
  const listener = getRequestListener(respond, {
    // The response does it.
    autoCleanupIncoming: false,
    // Only for malformed requests, such as one without Host. The routes handle their own errors.
    errorHandler: () => {
      const body = JSON.stringify(toMalformed(MALFORMED_REQUEST))
      return new Response(body, { status: 400, headers: toHeaders(body) })
    },
  })
  const unfinishedBytes = new SharedLimit(limits.unfinishedBytes)
  const options = {
    IncomingMessage: createReceivedRequest({ timeoutMs: RECEIVE_TIMEOUT_MS, unfinishedBytes, toClient }),
    ServerResponse: IdentifiedResponse,
    requireHostHeader: false,
    // No stream for a body that no request header announces.
    optimizeEmptyRequests: true,
    headersTimeout: RECEIVE_TIMEOUT_MS,
    connectionsCheckingInterval: 1_000,
  }
  const server = createServer(options, (request, response) => {
    if (request.socket.writableEnded) return request.discardBody()
    // Each of them would be executed.
    if (exchanges.add(request, response) > MAX_PIPELINED) return void request.socket.destroy()
    if (connections.isExcess(request.socket)) {
      response.shouldKeepAlive = false
      if (!probePaths.includes(request.url?.split('?', 1)[0] ?? '')) {
        const body = JSON.stringify(OVERLOADED)
        const headers = { ...toHeaders(body), 'Retry-After': toOverloadedRetryAfter() }
        return void response.writeHead(503, headers).end(body)
      }
    }
    // Host is required only since HTTP/1.1 (RFC 9112 section 3.2), and no route depends on it.
    if (request.httpVersion === '1.0') request.headers.host ??= 'localhost'
    if (hasSeveralHosts(request)) {
      const body = JSON.stringify(toMalformed('A request must have one Host header.'))
      response.writeHead(400, { ...toHeaders(body), Connection: 'close' }).end(body)
      return
    }
    return listener(request, response)
  })
  const connections = admitConnections(server, limits.connections, toConnectionClient)
  server.keepAliveTimeout = keepAliveMs
  const exchanges = trackExchanges()
  handleProtocolErrors(server, exchanges, toMalformed)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen({ port, host: bindAddress ?? undefined, backlog: BACKLOG }, resolve)
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

import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { getRequestListener } from '@hono/node-server'
import type { Problem } from '@pool/contract'
import type { Hono } from 'hono'
import type { HttpEnv } from './types.ts'

export interface Listening {
  readonly port: number
  /** Accepts nothing more, lets the requests under way finish, and cuts those that are left after `graceMs`. */
  close(graceMs: number): Promise<void>
}

/** What is said to a request that never reaches the routes, in the shape of every other error. */
const notHttp: Problem = { error: 'invalid-format', detail: 'This is not a request that HTTP/1.1 (RFC 9112) allows.' }

const headersOf = (body: string): Record<string, string> => ({
  'Content-Type': 'application/json',
  'Content-Length': String(Buffer.byteLength(body)),
  'X-Request-Id': randomUUID(),
})

const answerRaw = (socket: Duplex, status: number, problem: Problem, more: Record<string, string> = {}): void => {
  const body = JSON.stringify(problem)
  const headers = Object.entries({ ...headersOf(body), ...more, Connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${headers.join('')}\r\n${body}`)
}

/** Bytes that Node's parser refuses, by its error code. */
const refusals: ReadonlyMap<string, readonly [status: number, detail: string]> = new Map([
  ['HPE_HEADER_OVERFLOW', [431, 'The header fields are larger than 16 KiB.']],
  ['ERR_HTTP_REQUEST_TIMEOUT', [408, 'The request was not sent in time.']],
])

/** Answers what Node would answer by itself without a body, or not at all. */
const answerBeyondRoutes = (server: Server): void => {
  const unanswered = new WeakMap<Duplex, Map<IncomingMessage, ServerResponse>>()
  server.on('request', (request, response) => {
    const pending = unanswered.get(request.socket) ?? new Map()
    unanswered.set(request.socket, pending.set(request, response))
    response.once('close', () => pending.delete(request))
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // Only the broken request itself may be answered: a good one before it still has its own answer to come.
    const pending = [...(unanswered.get(socket) ?? [])]
    const isAnswerable = pending.every(([request, response]) => !request.complete && !response.headersSent)
    if (error.code === 'ECONNRESET' || !socket.writable || !isAnswerable) return socket.destroy()
    const [status, detail] = refusals.get(error.code ?? '') ?? [400, notHttp.detail ?? '']
    return answerRaw(socket, status, { ...notHttp, detail })
  })
  server.on('checkExpectation', (_, response) => {
    const body = JSON.stringify({ ...notHttp, detail: 'No Expect but 100-continue can be met.' })
    response.writeHead(417, headersOf(body)).end(body)
  })
  server.on('connect', (_, socket) => {
    // A 405 has to say which methods there are (RFC 9110 section 15.5.6): to a proxy's target, none.
    answerRaw(socket, 405, { error: 'method-not-allowed', detail: 'This is no proxy.' }, { Allow: '' })
  })
}

/** Listens on every address of the machine; rejects with the system's error when it cannot. */
export const listen = async (app: Hono<HttpEnv>, port: number): Promise<Listening> => {
  const listener = getRequestListener(app.fetch, {
    // Only of requests that are none, such as one without Host: the routes answer their own errors.
    errorHandler: () => {
      const body = JSON.stringify(notHttp)
      return new Response(body, { status: 400, headers: headersOf(body) })
    },
  })
  const server = createServer({ requireHostHeader: false }, (request, response) => {
    // Only from HTTP/1.1 on a request must have one (RFC 9112 section 3.2), and nothing here depends on it.
    if (request.httpVersion === '1.0') request.headers.host ??= 'localhost'
    return listener(request, response)
  })
  answerBeyondRoutes(server)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  server.once('error', reject)
  server.listen(port, resolve)
  await promise
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : port,
    async close(graceMs) {
      const closed = new Promise<void>(done => server.close(() => done()))
      // A connection kept alive is idle only between requests, so it is looked for again and again.
      const idle = setInterval(() => server.closeIdleConnections(), 50)
      const cut = setTimeout(() => server.closeAllConnections(), graceMs)
      await closed
      clearInterval(idle)
      clearTimeout(cut)
    },
  }
}

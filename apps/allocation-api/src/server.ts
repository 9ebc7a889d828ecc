import type { Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import type { Hono } from 'hono'
import type { HttpEnv } from './http/env.ts'

export interface Listening {
  readonly port: number
  /** Accepts nothing more, lets the requests under way finish, and cuts those that are left after `graceMs`. */
  close(graceMs: number): Promise<void>
}

/** What Node answers to bytes that are no HTTP request, in the shape of every other error. */
const answerBrokenRequest = (server: Server): void => {
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
    const tooLarge = error.code === 'HPE_HEADER_OVERFLOW'
    const body = JSON.stringify({
      error: 'invalid-format',
      detail: tooLarge ? 'The header fields are larger than 16 KiB.' : 'This is not an HTTP request.',
    })
    socket.end(
      `HTTP/1.1 ${tooLarge ? '431 Request Header Fields Too Large' : '400 Bad Request'}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    )
  })
}

/** Listens on every address of the machine; rejects with the system's error when it cannot. */
export const listen = async (app: Hono<HttpEnv>, port: number): Promise<Listening> => {
  const server = createAdaptorServer({ fetch: app.fetch }) as Server
  answerBrokenRequest(server)
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

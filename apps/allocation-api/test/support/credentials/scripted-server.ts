import { once } from 'node:events'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import type { KeyAndCertificate } from '@pool/test-kit/ceph/test-ca.ts'

/** What a server does with a connection. */
export type ConnectionHandler = (socket: Socket) => void

export interface ScriptedServer {
  readonly port: number
  /** Handles every new connection from now on. */
  respondWith(handler: ConnectionHandler): void
  /** Connections so far. */
  count(): number
  close(): Promise<void>
}

/** A server on 127.0.0.1 whose behaviour the test replaces. */
export const startScriptedServer = async (): Promise<ScriptedServer> => {
  const sockets = new Set<Socket>()
  let handler: ConnectionHandler = socket => socket.destroy()
  let count = 0
  const server = createServer(socket => {
    count += 1
    sockets.add(socket)
    // Resets are expected.
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    handler(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    port,
    respondWith: next => {
      handler = next
    },
    count: () => count,
    async close() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Forwards the connection to the server at that port. */
export const forwardTo =
  (port: number): ConnectionHandler =>
  near => {
    const far = connect(port, '127.0.0.1')
    far.on('error', () => near.destroy()).on('close', () => near.destroy())
    near.on('close', () => far.destroy())
    near.pipe(far).pipe(near)
  }

export const hang: ConnectionHandler = () => {}
export const closeAtOnce: ConnectionHandler = socket => socket.destroy()
export const resetAtOnce: ConnectionHandler = socket => void socket.resetAndDestroy()

/** Responds to any input, without TLS. */
export const withoutTls =
  (text: string): ConnectionHandler =>
  socket => {
    socket.once('data', () => socket.end(text))
  }

/** Over TLS with this certificate. `act` gets the complete head of the request. */
export const overTls =
  (identity: KeyAndCertificate, act: (socket: TLSSocket, head: string) => void): ConnectionHandler =>
  raw => {
    const server = createTlsServer(identity, socket => {
      let head = ''
      // The client may disconnect at any moment, for example when it rejects the certificate.
      socket
        .on('error', () => {})
        .on('data', chunk => {
          head += chunk.toString('latin1')
          if (head.includes('\r\n\r\n')) act(socket, head)
        })
    })
    server.on('tlsClientError', () => {})
    server.emit('connection', raw)
  }

/** A response with its Content-Length. */
export const toHttpResponse = (status: number, body = '', headers: readonly string[] = []): string =>
  [`HTTP/1.1 ${status} Some reason`, `Content-Length: ${Buffer.byteLength(body)}`, ...headers, '', body].join('\r\n')

export const errorXml = (code: string, message = ''): string =>
  `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`

export const listXml = (owner: string): string =>
  `<?xml version="1.0"?><ListAllMyBucketsResult><Owner><ID>${owner}</ID></Owner><Buckets/></ListAllMyBucketsResult>`

/** An object storage endpoint that accepts all keys. Tests of the key check use a real gateway. */
export const startFakeObjectStorage = async (identity: { readonly key: string; readonly cert: string }) => {
  const server = createHttpsServer(identity, (_, response) => response.end(listXml('tenant')))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

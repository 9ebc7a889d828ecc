import { connect } from 'node:net'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import type { KeyAndCertificate } from '@pool/test-kit/ceph/test-ca.ts'
import type { ConnectionHandler } from './scripted-server.ts'

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

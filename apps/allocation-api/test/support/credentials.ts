import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpsServer } from 'node:https'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { listenOnLoopback } from '@pool/dev/ports'
import { createCa, type KeyAndCertificate } from '@pool/test-kit/ceph/test-ca.ts'

/** What a server does with a connection. */
export type ConnectionHandler = (socket: Socket) => void

interface ScriptedServer {
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
  const port = await listenOnLoopback(server)
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
const closeAtOnce: ConnectionHandler = socket => socket.destroy()
const resetAtOnce: ConnectionHandler = socket => void socket.resetAndDestroy()

/** Responds to any input, without TLS. */
const withoutTls =
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

export const listXml = (owner: string, buckets: readonly string[] = []): string => {
  const list = buckets.map(name => `<Bucket><Name>${name}</Name></Bucket>`).join('')
  return `<?xml version="1.0"?><ListAllMyBucketsResult><Owner><ID>${owner}</ID></Owner><Buckets>${list}</Buckets></ListAllMyBucketsResult>`
}

/** An object storage endpoint that accepts all keys, and whose buckets are files. Tests of the key check use a real gateway. */
export const startFakeObjectStorage = async (
  identity: { readonly key: string; readonly cert: string },
  bucketFolder: string,
) => {
  const server = createHttpsServer(identity, ({ url = '/' }, response) => {
    const [, bucket = ''] = /^\/([^?]*)/.exec(url) ?? []
    if (bucket !== '' && !existsSync(join(bucketFolder, bucket))) {
      response.writeHead(404).end(errorXml('NoSuchBucket'))
    } else response.end(listXml('tenant', readdirSync(bucketFolder)))
  })
  return {
    port: await listenOnLoopback(server),
    close: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

const names = ['*.storage.test']

/** NODE_OPTIONS of a process that resolves those names to this machine. */
export const withStorageNames = `--import=${import.meta.resolve('@pool/test-kit/ceph/storage-names.ts')}`

/** Valid and invalid server certificates, and the file of the trusted CA. */
export const makeIdentities = async () => {
  const [ours, strange] = await Promise.all([createCa('trusted'), createCa('trusted')])
  const [good, otherName, expired, unknownCa] = await Promise.all([
    ours.issue({ names }),
    ours.issue({ names: ['fsn1.other.test'] }),
    ours.issue({ names, notAfter: new Date(Date.now() - 3_600_000) }),
    strange.issue({ names }),
  ])
  const folder = await mkdtemp(join(tmpdir(), 'credentials-'))
  const caFile = join(folder, 'ca.pem')
  await writeFile(caFile, ours.cert)
  return { good, otherName, expired, unknownCa, ca: ours.cert, caFile, remove: () => rm(folder, { recursive: true }) }
}

export type Identities = Awaited<ReturnType<typeof makeIdentities>>

/** A server whose behaviour says nothing about the credentials, and the message for it. */
interface FailureCase {
  readonly what: string
  readonly handler: ConnectionHandler
  readonly message: RegExp
}

/** Failures below HTTP semantics, the same for both kinds of checks. */
export const createTransportFailures = ({
  good,
  otherName,
  expired,
  unknownCa,
}: Identities): readonly FailureCase[] => {
  const raw = (text: string) => overTls(good, socket => void socket.end(text, 'latin1'))
  return [
    { what: 'closes at once', handler: closeAtOnce, message: /ended the connection/ },
    { what: 'resets at once', handler: resetAtOnce, message: /ended the connection/ },
    { what: 'closes after the request', handler: raw(''), message: /ended the connection/ },
    { what: 'a certificate for another name', handler: overTls(otherName, () => {}), message: /TLS/ },
    { what: 'a certificate that has expired', handler: overTls(expired, () => {}), message: /TLS/ },
    { what: 'a certificate of an unknown authority', handler: overTls(unknownCa, () => {}), message: /TLS/ },
    { what: 'plain HTTP', handler: withoutTls(toHttpResponse(200, listXml('x'))), message: /TLS/ },
    { what: 'garbage instead of TLS', handler: withoutTls('\0\xff garbage\r\n'), message: /TLS/ },
    { what: 'garbage instead of HTTP', handler: raw('garbage\r\n\r\n'), message: /not HTTP/ },
    {
      what: 'endless header fields',
      handler: raw(`HTTP/1.1 200 OK\r\nA: ${'a'.repeat(20_000)}`),
      message: /not HTTP/,
    },
    { what: 'half a body', handler: raw(toHttpResponse(200, listXml('x')).slice(0, -40)), message: /truncated/ },
    {
      what: 'a huge body',
      handler: raw(toHttpResponse(200, `${listXml('x')}${' '.repeat(1_024 * 1_024)}`)),
      message: /too large/,
    },
  ]
}

/** Complete HTTP responses that say nothing about the credentials. */
export const createHttpFailures = ({ good }: Identities, target: number): readonly FailureCase[] => {
  const respond = (text: string) => overTls(good, socket => void socket.end(text))
  const location = `Location: https://fsn1.storage.test:${target}/`
  return [
    { what: '301 to a good server', handler: respond(toHttpResponse(301, '', [location])), message: /redirect/ },
    { what: '307 to a good server', handler: respond(toHttpResponse(307, '', [location])), message: /redirect/ },
    {
      what: '429',
      handler: respond(toHttpResponse(429, errorXml('AccessDenied'))),
      message: /limiting the request rate/,
    },
    { what: '500', handler: respond(toHttpResponse(500)), message: /status 500/ },
    { what: '502 with HTML', handler: respond(toHttpResponse(502, '<html>mark</html>')), message: /status 502/ },
    { what: '503', handler: respond(toHttpResponse(503, errorXml('ServiceUnavailable'))), message: /status 503/ },
    { what: '404', handler: respond(toHttpResponse(404)), message: /status 404/ },
  ]
}

/** Responses that are not S3's, or not about the keys. */
export const createS3Failures = ({ good }: Identities): readonly FailureCase[] => {
  const respond = (status: number, body: string) =>
    overTls(good, socket => void socket.end(toHttpResponse(status, body)))
  const entities = '<!DOCTYPE l [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
  return [
    { what: '200 with HTML', handler: respond(200, '<!doctype html><html></html>'), message: /not an S3 response/ },
    { what: '200 with nothing', handler: respond(200, ''), message: /not an S3 response/ },
    { what: '200 with another XML', handler: respond(200, '<ListBucketResult/>'), message: /not an S3 response/ },
    { what: '200 with an error', handler: respond(200, errorXml('InvalidAccessKeyId')), message: /not an S3 response/ },
    {
      what: '200 with an entity bomb',
      handler: respond(200, entities + listXml('&b;')),
      message: /not an S3 response/,
    },
    { what: 'the listing of anonymous', handler: respond(200, listXml('anonymous')), message: /as anonymous/ },
    { what: '503 SlowDown', handler: respond(503, errorXml('SlowDown')), message: /limiting the request rate/ },
    { what: '403 RequestTimeTooSkewed', handler: respond(403, errorXml('RequestTimeTooSkewed')), message: /clock/ },
    {
      what: '400 about a header',
      handler: respond(400, errorXml('AuthorizationHeaderMalformed')),
      message: /rejects the request \(AuthorizationHeaderMalformed\)/,
    },
  ]
}

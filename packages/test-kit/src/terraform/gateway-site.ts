import { writeFile } from 'node:fs/promises'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer, request } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { AwsClient } from 'aws4fetch'
import { type Gateway, type HttpsResponse, httpsCall, startGateway } from '../ceph/gateway.ts'
import { createCa } from '../ceph/test-ca.ts'
import { type BucketApi, type S3Connection, S3Error } from './minio.ts'
import { findProviderEnvironment, usesRealProviders } from './real-providers.ts'

export interface ServerAddress {
  /** Address to connect to. The certificate must be valid for the host name of the connection, not for this address. */
  readonly host: string
  /** PEM of the only trusted CA. */
  readonly ca: string
}

export interface RequestOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Sends S3 requests as one user over TLS, each on a new connection, signed with SigV4 unless `anonymous`. */
export const createS3Client = ({ server, region, user, password, tls }: S3Connection, { host, ca }: ServerAddress) => {
  if (!tls) throw new Error('the client requires TLS')
  const { hostname, port } = new URL(`https://${server}`)
  const client = new AwsClient({ accessKeyId: user, secretAccessKey: password, service: 's3', region, retries: 0 })
  const send = (path: string, method: string, headers: Record<string, string>, body?: string): Promise<HttpsResponse> =>
    httpsCall({ host, port, servername: hostname, path, method, ca, headers: { ...headers, host: server } }, body)
  return {
    async signed(path: string, { method = 'GET', headers = {}, body }: RequestOptions = {}): Promise<HttpsResponse> {
      const sent = { method, headers, ...(body === undefined ? {} : { body }) }
      const request = await client.sign(`https://${server}${path}`, sent)
      return send(path, method, Object.fromEntries(request.headers), body)
    },
    anonymous: (path: string): Promise<HttpsResponse> => send(path, 'GET', {}),
  }
}

const parseErrorCode = (text: string): string => /<Code>(\w+)<\/Code>/.exec(text)?.[1] ?? 'no code'

/** The S3 calls of the provider on a real server: https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_Simple_Storage_Service.html */
function createS3Store(connection: S3Connection, server: ServerAddress): BucketApi {
  const { signed } = createS3Client(connection, server)

  /** Returns undefined for a 404 with the code `notFoundCode`, or for a 404 to HEAD, which has no body. */
  const request = async (
    path: string,
    notFoundCode: string,
    options: RequestOptions = {},
  ): Promise<HttpsResponse | undefined> => {
    const answer = await signed(path, options)
    if (answer.status < 300) return answer
    const code = parseErrorCode(answer.text)
    if (answer.status === 404 && (options.method === 'HEAD' || code === notFoundCode)) return undefined
    throw new S3Error(answer.status, code)
  }

  return {
    async exists(bucket) {
      // As the provider: it asks for the location first, whose response, unlike that of HEAD, has the reason of a rejection.
      if ((await request(`/${bucket}?location`, 'NoSuchBucket')) === undefined) return false
      return (await request(`/${bucket}`, 'NoSuchBucket', { method: 'HEAD' })) !== undefined
    },
    async create(bucket, locking) {
      const body = `<CreateBucketConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><LocationConstraint>${connection.region}</LocationConstraint></CreateBucketConfiguration>`
      const headers: Record<string, string> = locking ? { 'x-amz-bucket-object-lock-enabled': 'true' } : {}
      await request(`/${bucket}`, '', { method: 'PUT', headers, body })
    },
    async hasObjectLock(bucket) {
      const answer = await request(`/${bucket}?object-lock`, 'ObjectLockConfigurationNotFoundError')
      return answer?.text.includes('<ObjectLockEnabled>Enabled</ObjectLockEnabled>') ?? false
    },
    getPolicy: async bucket => (await request(`/${bucket}?policy`, 'NoSuchBucketPolicy'))?.text ?? '',
    deletePolicy: async bucket => (await signed(`/${bucket}?policy`, { method: 'DELETE' })).status,
    async isEmpty(bucket) {
      const answer = await request(`/${bucket}?list-type=2&max-keys=1`, '')
      return answer !== undefined && !answer.text.includes('<Contents>')
    },
    async delete(bucket) {
      await request(`/${bucket}`, 'NoSuchBucket', { method: 'DELETE' })
    },
  }
}

/** A response that the proxy sends instead of the gateway's. */
export interface Answer {
  readonly status: number
  readonly code: string
}

/** Returns a response, or null for that of the gateway. `query` is sorted and without empty values, such as `policy`. */
export type Interceptor = (method: string, query: string) => Answer | null

/** An HTTP proxy between a provider that Terraform has started and the gateway. */
export interface GatewayProxy {
  /** The variables by which a program in Go finds the proxy and trusts its certificate. */
  readonly environment: Readonly<Record<string, string>>
  /** Requests to the gateway since the start, such as `DELETE ?policy 204`. */
  readonly requests: readonly string[]
  /** Replaces the interceptor. */
  intercept(interceptor: Interceptor): void
  stop(): void
}

interface Options {
  /** Host names, wildcards allowed, that lead to the gateway. All other hosts are connected as requested. */
  readonly domain: string
  /** Where the certificate of the proxy's CA is written. */
  readonly caFile: string
}

const forwardAll: Interceptor = () => null

const toErrorBody = ({ code }: Answer): string =>
  `<?xml version="1.0" encoding="UTF-8"?><Error><Code>${code}</Code><RequestId>test</RequestId></Error>`

/**
 * Starts the proxy. The real provider takes a host name and the CAs of the system, so neither the address nor the certificate
 * of a gateway on this machine fits it.
 */
async function startGatewayProxy(gateway: Gateway, { domain, caFile }: Options): Promise<GatewayProxy> {
  const authority = await createCa('test CA of the proxy')
  await writeFile(caFile, authority.cert)
  const requests: string[] = []
  let interceptor = forwardAll

  const answer = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const { method = '', url = '/', headers } = incoming
    const parameters = new URL(url, 'https://gateway.test').searchParams
    parameters.sort()
    const query = [...parameters].map(([name, value]) => (value === '' ? name : `${name}=${value}`)).join('&')
    const record = (status: number) => requests.push(`${method} ${query && `?${query} `}${status}`)
    const instead = interceptor(method, query)
    if (instead) {
      record(instead.status)
      incoming.resume()
      outgoing.writeHead(instead.status, { 'content-type': 'application/xml' })
      outgoing.end(instead.status >= 300 ? toErrorBody(instead) : '')
      return
    }
    const { host, port, ca } = gateway
    const servername = headers.host?.split(':')[0]
    const forwarded = request({ host, port, ca, servername, method, path: url, headers, agent: false }, response => {
      record(response.statusCode ?? 0)
      outgoing.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(outgoing)
    })
    forwarded.on('error', () => outgoing.destroy())
    incoming.pipe(forwarded)
  }

  const gatewayServer = createHttpsServer(await authority.issue({ names: [`*.${domain}`] }), answer)
  const sockets = new Set<Socket>()
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => socket.destroy())
  }
  const server = createHttpServer()
  server.on('connection', keep)
  server.on('connect', ({ url = '' }: IncomingMessage, socket: Socket) => {
    const [host = '', port] = url.split(':')
    const confirm = () => socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
    if (host.endsWith(`.${domain}`)) {
      confirm()
      gatewayServer.emit('connection', socket)
      return
    }
    const target = connect(Number(port ?? 443), host, () => {
      confirm()
      socket.pipe(target).pipe(socket)
    })
    keep(target)
    target.on('close', () => socket.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  return {
    environment: { HTTPS_PROXY: `http://127.0.0.1:${port}`, SSL_CERT_FILE: caFile },
    requests,
    intercept(next) {
      interceptor = next
    },
    stop() {
      server.close()
      gatewayServer.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

interface Keys {
  readonly accessKey: string
  readonly secretKey: string
}

/** A Ceph gateway as `fsn1.<domain>`, for the double of the provider or, with REAL_PROVIDERS=1, for the real one. */
export interface GatewaySite {
  /** host:port, without region. */
  readonly domain: string
  /** The CA of the gateway's certificate. */
  readonly caFile: string
  /** Creates another user. */
  addUser(keys: Keys): Promise<unknown>
  /** Sends requests with the keys of the first user. */
  readonly client: ReturnType<typeof createS3Client>
  /** Connects the double. */
  connect(connection: S3Connection): BucketApi
  /** The variables for the real provider; null for the double. */
  readonly realEnvironment: Readonly<Record<string, string>> | null
  /** Whether the lookup of an existing bucket is rejected with 403, so that a creation fails half-way. */
  rejectLookups(rejects: boolean): void
  /** The status with which the removal of a policy is answered to the real provider. Null: that of the gateway. */
  answerPolicyRemoval(status: 200 | 204 | 403 | null): void
  stop(): Promise<void>
}

const DOMAIN = 'storage.test'

export async function startGatewaySite(keys: Keys): Promise<GatewaySite> {
  const gateway = await startGateway({ names: [`*.${DOMAIN}`] })
  await gateway.addUser(keys)
  const proxy = usesRealProviders
    ? await startGatewayProxy(gateway, { domain: DOMAIN, caFile: join(dirname(gateway.caFile), 'proxy-ca.pem') })
    : null
  let rejects = false
  let removalStatus: number | null = null
  proxy?.intercept((method, query) => {
    if (rejects && method === 'HEAD') return { status: 403, code: 'AccessDenied' }
    const isRemoval = method === 'DELETE' && query === 'policy'
    return isRemoval && removalStatus !== null ? { status: removalStatus, code: 'AccessDenied' } : null
  })
  const domain = `${DOMAIN}:${gateway.port}`
  const connection = {
    server: `fsn1.${domain}`,
    region: 'fsn1',
    user: keys.accessKey,
    password: keys.secretKey,
    tls: true,
  }
  return {
    domain,
    caFile: gateway.caFile,
    addUser: keys => gateway.addUser(keys),
    client: createS3Client(connection, gateway),
    connect(connection) {
      const store = createS3Store(connection, gateway)
      const exists = async (bucket: string) => {
        const found = await store.exists(bucket)
        if (found && rejects) throw new S3Error(403, 'AccessDenied')
        return found
      }
      return { ...store, exists }
    },
    realEnvironment: proxy && { ...findProviderEnvironment(), ...proxy.environment },
    rejectLookups(next) {
      rejects = next
    },
    answerPolicyRemoval(status) {
      removalStatus = status
    },
    async stop() {
      proxy?.stop()
      await gateway.stop()
    },
  }
}

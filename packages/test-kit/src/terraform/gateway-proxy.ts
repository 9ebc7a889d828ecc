import { writeFile } from 'node:fs/promises'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer, request } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { Gateway } from '../ceph/gateway.ts'
import { createCa } from '../ceph/test-ca.ts'

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
export async function startGatewayProxy(gateway: Gateway, { domain, caFile }: Options): Promise<GatewayProxy> {
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

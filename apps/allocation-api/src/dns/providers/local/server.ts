import type { RemoteInfo, Socket as UdpSocket } from 'node:dgram'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { Socket, Server as TcpServer } from 'node:net'
import { createServer } from 'node:net'
import type { ResponderOptions } from './responder.ts'
import { createResponder } from './responder.ts'
import { serveTcpConnection } from './tcp-connection.ts'

export interface DnsServerOptions extends ResponderOptions {
  /** Default 127.0.0.1: this server is for development and has no rate limit. */
  readonly host?: string
  /** The same number for UDP and TCP; 0, the default, takes any that is free on both. */
  readonly port?: number
  /** Milliseconds from one answered query to the next until a TCP connection is cut (RFC 7766 section 6.2.3). */
  readonly tcpIdleMs?: number
  /** Connections beyond this are closed as they come. */
  readonly maxTcpConnections?: number
}

export interface DnsServer {
  readonly host: string
  readonly port: number
  close(): Promise<void>
}

interface Handlers {
  onConnection(socket: Socket): void
  onDatagram(udp: UdpSocket, message: Buffer, from: RemoteInfo): void
}

interface Bound {
  readonly host: string
  readonly port: number
  readonly tcp: TcpServer
  readonly udp: UdpSocket
}

const MAX_BIND_ATTEMPTS = 20

const closed = (socket: { close(done: () => void): unknown }): Promise<void> =>
  new Promise(resolve => {
    socket.close(() => resolve())
  })

const bindOnce = async (host: string, port: number, handlers: Handlers): Promise<Bound> => {
  const tcp = createServer({ allowHalfOpen: true, noDelay: true }, handlers.onConnection)
  tcp.listen({ host, port })
  await once(tcp, 'listening')
  const bound = tcp.address()
  if (bound === null || typeof bound === 'string') throw new TypeError('a TCP server has no numeric address')

  const udp = createSocket(bound.family === 'IPv6' ? 'udp6' : 'udp4')
  udp.on('message', (message, from) => handlers.onDatagram(udp, message, from))
  try {
    udp.bind(bound.port, bound.address)
    await once(udp, 'listening')
    return { tcp, udp, host: bound.address, port: bound.port }
  } catch (error) {
    await Promise.all([closed(tcp), closed(udp)])
    throw error
  }
}

const isAddressInUse = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'

const bind = async (host: string, port: number, handlers: Handlers): Promise<Bound> => {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await bindOnce(host, port, handlers)
    } catch (error) {
      // The number that the system chose for TCP may be in use for UDP.
      if (port !== 0 || !isAddressInUse(error) || attempt === MAX_BIND_ATTEMPTS) throw error
    }
  }
}

/** Rejects with the system's error (`EADDRINUSE`, `EACCES`) when the port cannot be had. */
export const startDnsServer = async (options: DnsServerOptions): Promise<DnsServer> => {
  const respond = createResponder(options)
  const connections = new Set<Socket>()

  const { host, port, udp, tcp } = await bind(options.host ?? '127.0.0.1', options.port ?? 0, {
    async onConnection(socket) {
      connections.add(socket)
      await serveTcpConnection(socket, respond, options.tcpIdleMs ?? 10_000)
      connections.delete(socket)
    },
    async onDatagram(socket, message, from) {
      const response = await respond(message, 'udp')
      if (!response) return
      try {
        socket.send(response, from.port, from.address, () => {})
      } catch {
        // The socket was closed in the meantime, or the source port was a forged 0.
      }
    },
  })
  tcp.maxConnections = options.maxTcpConnections ?? 100
  tcp.on('error', options.onError)
  udp.on('error', options.onError)

  let closing: Promise<unknown> | undefined
  return {
    host,
    port,
    async close() {
      for (const socket of connections) socket.destroy()
      closing ??= Promise.all([closed(udp), closed(tcp)])
      await closing
    },
  }
}

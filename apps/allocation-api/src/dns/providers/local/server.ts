import type { RemoteInfo, Socket as UdpSocket } from 'node:dgram'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { Socket, Server as TcpServer } from 'node:net'
import { createServer } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { frameMessage, unframeMessage } from '../../wire/message.ts'
import type { ResponderOptions } from './responder.ts'
import { createResponder, type Respond } from './responder.ts'

export interface DnsServerOptions extends ResponderOptions {
  /** Default 127.0.0.1: this server is for development and has no rate limit. */
  readonly host?: string
  /** For UDP and TCP; 0, the default: a port that is free for both. */
  readonly port?: number
  /** A TCP connection is closed after this time without an answered query (RFC 7766 section 6.2.3). */
  readonly tcpIdleMs?: number
  /** Further connections are closed immediately. */
  readonly maxTcpConnections?: number
}

export interface DnsServer {
  readonly host: string
  readonly port: number
  close(): Promise<void>
}

async function* readMessages(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let received: Buffer = Buffer.alloc(0)
  for await (const chunk of chunks) {
    received = Buffer.concat([received, chunk])
    for (let next = unframeMessage(received); next; next = unframeMessage(received)) {
      received = next.rest
      yield next.message
    }
  }
}

/**
 * Answers one query at a time, in order: a client that does not read its responses is not read from any further. `idleMs`
 * is the maximum time from one answered query to the next. Octets that do not form a query do not keep the connection open.
 * Resolves when the connection is closed; never rejects.
 */
const serveTcpConnection = async (socket: Socket, respond: Respond, idleMs: number): Promise<void> => {
  const idle = setTimeout(() => socket.destroy(), idleMs)
  socket.on('error', () => {})
  try {
    await pipeline(
      socket,
      async function* (chunks: AsyncIterable<Buffer>) {
        for await (const message of readMessages(chunks)) {
          const response = await respond(message, 'tcp')
          if (!response) continue
          yield frameMessage(response)
          idle.refresh()
        }
      },
      socket,
    )
  } catch {
    // The client closed the connection, or was disconnected.
  } finally {
    clearTimeout(idle)
    socket.destroy()
  }
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
      // The port that the system chose for TCP may be in use for UDP.
      if (port !== 0 || !isAddressInUse(error) || attempt === MAX_BIND_ATTEMPTS) throw error
    }
  }
}

/** Rejects with the system's error (`EADDRINUSE`, `EACCES`) if it cannot bind the port. */
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

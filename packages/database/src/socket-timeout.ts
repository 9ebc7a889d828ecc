import { createConnection, type Socket } from 'node:net'

/** The driver's connection target: one or more hosts, or the path of a Unix domain socket. */
export interface SocketTarget {
  readonly host: readonly string[]
  readonly port: readonly number[]
  readonly path: string | false
}

/** The driver reads `host` from its socket to verify the server's certificate. */
export type DatabaseSocket = Socket & { host?: string }

/**
 * Destroys the socket if nothing arrives within `timeoutMs` of a write. A peer that vanished, such as the old primary of a
 * failover, sends no reset. Without this timeout, statements would be sent to it until the kernel stops retransmitting,
 * about 15 minutes later.
 */
const destroyOnSilence = (socket: Socket, timeoutMs: number): void => {
  let timer: NodeJS.Timeout | undefined
  const stopTimer = () => {
    clearTimeout(timer)
    timer = undefined
  }
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean
  socket.write = (...args: unknown[]) => {
    timer ??= setTimeout(() => {
      socket.destroy(Object.assign(new Error(`no answer for ${timeoutMs} ms`), { code: 'ETIMEDOUT' }))
    }, timeoutMs).unref()
    return write(...args)
  }
  socket.on('data', stopTimer)
  socket.on('close', stopTimer)
}

/**
 * Creates the sockets of a pool, each with the silence timeout above. A socket is returned while it still connects: Node
 * buffers what is written, and the driver only handles sockets that close, so a failed connection reaches it as a close.
 * With several hosts, each new socket uses the next one.
 */
export const createSocketFactory = (timeoutMs: number) => {
  let created = 0
  return ({ host, port, path }: SocketTarget): DatabaseSocket => {
    const index = created++ % host.length
    const target = path ? { path } : { host: host[index] ?? 'localhost', port: port[index] ?? 5432 }
    const socket: DatabaseSocket = createConnection(target)
    if ('host' in target) socket.host = target.host
    destroyOnSilence(socket, timeoutMs)
    return socket
  }
}

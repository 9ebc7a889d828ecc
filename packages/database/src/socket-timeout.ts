import { createConnection, type Socket } from 'node:net'

/** What the driver asks a socket for; it takes several hosts, or the path of a Unix domain socket. */
export interface SocketTarget {
  readonly host: readonly string[]
  readonly port: readonly number[]
  readonly path: string | false
}

/** The driver reads the host from its socket, for the name in a certificate. */
export type DatabaseSocket = Socket & { host?: string }

/**
 * Destroys the socket when something was sent and nothing at all comes back. A peer that vanished, as the old side of
 * a failover does, resets nothing: without this, statements would be sent into the void until the kernel gives up
 * retransmitting, a quarter of an hour later.
 */
const watchSilence = (socket: Socket, silenceMs: number): void => {
  let deadline: NodeJS.Timeout | undefined
  const heard = () => {
    clearTimeout(deadline)
    deadline = undefined
  }
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean
  socket.write = (...args: unknown[]) => {
    deadline ??= setTimeout(() => {
      socket.destroy(Object.assign(new Error(`no answer for ${silenceMs} ms`), { code: 'ETIMEDOUT' }))
    }, silenceMs).unref()
    return write(...args)
  }
  socket.on('data', heard)
  socket.on('close', heard)
}

/**
 * Makes the sockets of a pool, which do not outlive their peer. Each is returned while it still connects: what is
 * written is sent then, and the driver, which only knows sockets that end, hears of one that cannot connect. Of
 * several hosts each is tried in its turn.
 */
export const createSocketFactory = (silenceMs: number) => {
  let turn = 0
  return ({ host, port, path }: SocketTarget): DatabaseSocket => {
    const index = turn++ % host.length
    const target = path ? { path } : { host: host[index] ?? 'localhost', port: port[index] ?? 5432 }
    const socket: DatabaseSocket = createConnection(target)
    if ('host' in target) socket.host = target.host
    watchSilence(socket, silenceMs)
    return socket
  }
}

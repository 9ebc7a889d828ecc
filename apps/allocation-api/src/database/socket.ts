import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'

export interface SocketAddress {
  /** Tried in this order. */
  readonly hosts: readonly { readonly host: string; readonly port: number }[]
  /** A Unix domain socket in place of the hosts. */
  readonly path?: string | undefined
}

export interface SocketLimits {
  readonly connectMs: number
  /** How long what was sent may stay unanswered. Longer than the slowest statement of the connection takes. */
  readonly silenceMs: number
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

const open = async (target: { host: string; port: number } | { path: string }, ms: number): Promise<DatabaseSocket> => {
  const socket: DatabaseSocket = createConnection(target)
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(ms) })
    return socket
  } catch (error) {
    socket.on('error', () => {})
    socket.destroy()
    if (!(error instanceof Error) || error.name !== 'AbortError') throw error
    throw Object.assign(new Error(`no connection within ${ms} ms`), { code: 'CONNECT_TIMEOUT' })
  }
}

/** A connected socket to the first host that takes one, which does not outlive its peer. */
export const openSocket = async (address: SocketAddress, limits: SocketLimits): Promise<DatabaseSocket> => {
  const targets = address.path === undefined ? address.hosts : [{ path: address.path }]
  let failure: unknown = new Error('the connection string names no host')
  for (const target of targets) {
    try {
      const socket = await open(target, limits.connectMs)
      if ('host' in target) socket.host = target.host
      watchSilence(socket, limits.silenceMs)
      return socket
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

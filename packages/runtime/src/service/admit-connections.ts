import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { SharedLimit, type SharedLimitOptions } from './shared-limit.ts'

/** Connections beyond the limits, which are open until they have a response. What they send is memory of the kernel until then. */
const MAX_EXCESS = 256

/** Connections by client: their oldest first, and the client first that waits longest for its turn. */
class ConnectionQueue {
  readonly #byClient = new Map<string, Set<Socket>>()
  size = 0

  add(client: string, socket: Socket): void {
    const own = this.#byClient.get(client) ?? new Set()
    this.#byClient.set(client, own.add(socket))
    this.size += 1
  }

  delete(client: string, socket: Socket): void {
    const own = this.#byClient.get(client)
    if (!own?.delete(socket)) return
    this.size -= 1
    if (own.size === 0) this.#byClient.delete(client)
  }

  /** Removes the oldest of the client whose turn it is. */
  takeNext(): Socket | undefined {
    for (const [client, own] of this.#byClient) {
      this.#byClient.delete(client)
      this.#byClient.set(client, own)
      for (const socket of own) {
        this.delete(client, socket)
        return socket
      }
    }
    return undefined
  }

  /** The oldest of the client that has the most. */
  findExpendable(): Socket | undefined {
    let most = new Set<Socket>()
    for (const own of this.#byClient.values()) if (own.size > most.size) most = own
    const [oldest] = most
    return oldest
  }
}

/** Of how many connections the reading begins in a turn of the event loop that accepts none. */
const STARTS_PER_TURN = 4
/** While each turn accepts one, the reading of one begins in so many turns. */
const TURNS_PER_START = 16

/**
 * Accepts connections before it reads from those that it has accepted, and then begins with one of each client in turn. Node
 * accepts one in a turn of the event loop, and reads from all others in the same turn. So a flood would fill the queue of the
 * kernel, which rejects everybody then, and a probe would wait until the flood before it has its responses.
 *
 * It counts the connections. One beyond the limits is accepted, because only its request says whether it is a probe. The client
 * that has the most of them loses its oldest, so that neither idle ones nor a flood keep a probe out.
 */
export const admitConnections = (
  server: Server,
  max: SharedLimitOptions,
  toClient: (address: string) => string | null,
) => {
  const admitted = new SharedLimit(max)
  const excess = new ConnectionQueue()
  const excessSockets = new WeakSet<Duplex>()
  const unread = new ConnectionQueue()
  let hasAccepted = false
  let turns = 0
  let isScheduled = false
  const endTurn = (): void => {
    isScheduled = false
    turns += 1
    const starts = hasAccepted ? Number(turns % TURNS_PER_START === 0) : STARTS_PER_TURN
    for (let i = 0; i < starts; i++) startNext()
    hasAccepted = false
    schedule()
  }
  const startNext = (): void => {
    const socket = unread.takeNext()
    if (!socket) return
    receive(socket)
    socket.resume()
  }
  const schedule = (): void => {
    if (isScheduled || unread.size === 0) return
    isScheduled = true
    setImmediate(endTurn)
  }
  // What `node:http` does with a new connection: it prepares the parser. It has no option for when.
  const listeners = server.listeners('connection')
  const receive = (socket: Socket): void => {
    for (const listener of listeners) listener.call(server, socket)
  }
  server.removeAllListeners('connection')
  // `node:http` does not pass on this option of `node:net` either.
  Object.assign(server, { pauseOnConnect: true })
  server.on('connection', socket => {
    const client = toClient(socket.remoteAddress ?? '')
    const name = client ?? ''
    const isAdmitted = admitted.take(client)
    unread.add(name, socket)
    socket.once('close', () => {
      unread.delete(name, socket)
      if (isAdmitted) admitted.release(client)
      else excess.delete(name, socket)
    })
    if (!isAdmitted) {
      excess.add(name, socket)
      excessSockets.add(socket)
      if (excess.size > MAX_EXCESS) excess.findExpendable()?.destroy()
    }
    hasAccepted = true
    schedule()
  })
  return { isExcess: (socket: Duplex): boolean => excess.size > 0 && excessSockets.has(socket) }
}

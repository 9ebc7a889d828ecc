import { connect, createServer, type Socket } from 'node:net'
import { listenOnLoopback } from '@pool/dev/ports'

/**
 * Sends each item after its delay and keeps the order of the items, even if the delay becomes shorter or a busy machine sends
 * a due item late.
 */
const createDelayQueue = <Item>(send: (item: Item) => void) => {
  const waiting: { readonly item: Item; readonly due: number }[] = []
  const wait = () => {
    const [first] = waiting
    // A timer has a resolution of one millisecond and must not send early.
    if (first) setTimeout(sendDue, Math.max(0, Math.ceil(first.due - performance.now())))
  }
  const sendDue = () => {
    for (let first = waiting[0]; first && first.due <= performance.now(); first = waiting[0]) {
      waiting.shift()
      send(first.item)
    }
    wait()
  }
  return (item: Item, delayMs: number): void => {
    if (delayMs === 0 && waiting.length === 0) send(item)
    else if (waiting.push({ item, due: performance.now() + delayMs }) === 1) wait()
  }
}

export interface TcpProxy {
  readonly port: number
  /** The number of open connections. */
  count(): number
  /** How often a client has sent data after the server had sent some: with a delay, its round trips. */
  roundTrips(): number
  /** Stops forwarding and keeps all connections open, as a silent network does. */
  freeze(): void
  thaw(): void
  /** Delays what the servers send from now on, and, if `requestMs` is not given, what the clients send as well; 0: no delay. */
  delay(ms: number, requestMs?: number): void
  /** Responds with these bytes to the next data of each client and ends its connection; undefined: forwards again. */
  respondWith(bytes: string | undefined): void
  /** True: what the server sends is lost, what the clients send is forwarded. False: forwards both again. */
  dropResponses(isDropping: boolean): void
  /** True: resets all connections, new ones too. False: accepts connections again. */
  refuse(isRefusing: boolean): void
  /** Silences the current connections permanently and serves new ones, as a failover from a vanished server does. */
  abandon(): void
  /** Forwards new connections to this port. */
  redirect(target: number): void
  /** Resets one connection. */
  resetOne(): void
  /** Resets every connection. */
  resetAll(): void
  close(): Promise<void>
}

interface Pair {
  readonly near: Socket
  readonly far: Socket
}

/**
 * Forwards connections to port `target` of 127.0.0.1. `inspect` is called for each connection, and returns what gets the data
 * that its client sends.
 */
export const startTcpProxy = async (target: number, inspect?: () => (sent: Buffer) => void): Promise<TcpProxy> => {
  let currentTarget = target
  const pairs = new Set<Pair>()
  const abandoned = new Set<Pair>()
  let frozen = false
  let refusing = false
  let delayMs = { request: 0, response: 0 }
  let dropping = false
  let response: string | undefined
  let roundTrips = 0
  const cutAll = () => {
    for (const { near } of pairs) near.resetAndDestroy()
  }

  const server = createServer({ pauseOnConnect: true }, near => {
    if (refusing) {
      near.resetAndDestroy()
      return
    }
    const pair: Pair = { near, far: connect(currentTarget, '127.0.0.1') }
    pairs.add(pair)
    let isAnswered = true
    const inspectSent = inspect?.()
    for (const [from, to] of [
      [near, pair.far],
      [pair.far, near],
    ] as const) {
      const forward = createDelayQueue<Buffer>(bytes => void (to.writable && to.write(bytes)))
      from.on('data', bytes => {
        if (from === near && isAnswered) roundTrips += 1
        isAnswered = from === pair.far
        if (from === near) inspectSent?.(bytes)
        if (dropping && from === pair.far) return
        if (response !== undefined && from === near) near.end(response)
        else forward(bytes, from === near ? delayMs.request : delayMs.response)
      })
      from.on('error', () => {})
      from.on('close', () => {
        if (abandoned.has(pair)) return
        pairs.delete(pair)
        to.destroy()
      })
    }
    if (frozen) pair.far.pause()
    else near.resume()
  })
  const setFlowing = (flowing: boolean) => {
    frozen = !flowing
    for (const { near, far } of pairs) {
      for (const socket of [near, far]) flowing ? socket.resume() : socket.pause()
    }
  }
  const port = await listenOnLoopback(server)
  return {
    port,
    count: () => pairs.size,
    roundTrips: () => roundTrips,
    freeze: () => setFlowing(false),
    thaw: () => setFlowing(true),
    delay(ms, requestMs = ms) {
      delayMs = { request: requestMs, response: ms }
    },
    respondWith(bytes) {
      response = bytes
    },
    dropResponses(isDropping) {
      dropping = isDropping
    },
    refuse(isRefusing) {
      refusing = isRefusing
      if (refusing) cutAll()
    },
    abandon() {
      for (const pair of pairs) {
        pairs.delete(pair)
        abandoned.add(pair)
        pair.near.pause()
        // The server's side closes, so that data in flight never arrives.
        pair.far.destroy()
      }
    },
    redirect(target) {
      currentTarget = target
    },
    resetOne() {
      const [...open] = pairs
      open[Math.floor(Math.random() * open.length)]?.near.resetAndDestroy()
    },
    resetAll: cutAll,
    async close() {
      for (const { near, far } of [...pairs, ...abandoned]) {
        near.destroy()
        far.destroy()
      }
      await new Promise(resolve => server.close(resolve))
    },
  }
}

import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { createDelayQueue } from './delay-queue.ts'

export interface TcpProxy {
  readonly port: number
  /** Connections open at the moment. */
  count(): number
  /** Nothing is carried any more, and no connection ends: a network that has gone silent. */
  freeze(): void
  thaw(): void
  /** What comes in from now on goes out so many milliseconds later; 0: at once. */
  delay(ms: number): void
  /** Whoever sends something from now on is answered this, and cut off; undefined: it is carried again. */
  respondWith(bytes: string | undefined): void
  /** New connections are reset, and those that there are; until it is called with false. */
  refuse(isRefusing: boolean): void
  /** The connections of now go silent for good; new ones are served: a failover whose old side just vanished. */
  abandon(): void
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

/** Between a client and 127.0.0.1:`target`. */
export const startTcpProxy = async (target: number): Promise<TcpProxy> => {
  const pairs = new Set<Pair>()
  const abandoned = new Set<Pair>()
  let frozen = false
  let refusing = false
  let delayMs = 0
  let response: string | undefined
  const cutAll = () => {
    for (const { near } of pairs) near.resetAndDestroy()
  }

  const server = createServer({ pauseOnConnect: true }, near => {
    if (refusing) {
      near.resetAndDestroy()
      return
    }
    const pair: Pair = { near, far: connect(target, '127.0.0.1') }
    pairs.add(pair)
    for (const [from, to] of [
      [near, pair.far],
      [pair.far, near],
    ] as const) {
      const carry = createDelayQueue<Buffer>({
        send: bytes => void (to.writable && to.write(bytes)),
        now: () => performance.now(),
        after: (ms, then) => void setTimeout(then, ms),
      })
      from.on('data', bytes => {
        if (response !== undefined && from === near) near.end(response)
        else carry(bytes, delayMs)
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
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    port,
    count: () => pairs.size,
    freeze: () => setFlowing(false),
    thaw: () => setFlowing(true),
    delay(ms) {
      delayMs = ms
    },
    respondWith(bytes) {
      response = bytes
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
        // The server's side ends, as that of a machine which is gone: nothing that was in flight arrives later.
        pair.far.destroy()
      }
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

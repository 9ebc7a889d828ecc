import { setTimeout as sleep } from 'node:timers/promises'
import { encodeRequest, HttpConnection, type HttpResponse } from '@pool/test-kit/http1.ts'
import { TOKEN } from '@pool/test-kit/lease-connection.ts'

/** A long-polling client with its own connection. */
export interface Waiter {
  readonly connection: HttpConnection
  /** Waits for a generation other than `generation`; `receivedAt` is on the clock of performance.now(). */
  readonly wait: (
    generation: number,
    seconds: number,
  ) => Promise<{ readonly response: HttpResponse; readonly receivedAt: number }>
}

const RESPONSE_MARGIN_MS = 15_000

export const openWaiter = async (port: number, slot: string): Promise<Waiter> => {
  const connection = await HttpConnection.open(port)
  const path = `/lease/${encodeURIComponent(slot)}`
  return {
    connection,
    wait: async (generation, seconds) => {
      const headers = [`Authorization: Bearer ${TOKEN}`, `If-None-Match: "${generation}"`, `Prefer: wait=${seconds}`]
      const timeoutMs = seconds * 1_000 + RESPONSE_MARGIN_MS
      const response = await connection.send(encodeRequest({ path, headers }), { timeoutMs })
      return { response, receivedAt: performance.now() }
    },
  }
}

/** The backlog of a listening socket is limited. */
const MAX_CONCURRENT_OPENS = 100

export const openWaiters = async (port: number, slot: string, count: number): Promise<Waiter[]> => {
  const waiters: Waiter[] = []
  while (waiters.length < count) {
    const batch = Math.min(MAX_CONCURRENT_OPENS, count - waiters.length)
    waiters.push(...(await Promise.all(Array.from({ length: batch }, () => openWaiter(port, slot)))))
  }
  return waiters
}

/** Resets the connections, which the witness notices, unlike a plain close. */
export const closeWaiters = (waiters: readonly Waiter[]): void => {
  for (const { connection } of waiters) connection.socket.resetAndDestroy()
}

/** A client cannot observe that its wait has begun, so this gives the witness time to accept `count` waits. */
export const allowToBegin = (count: number): Promise<void> => sleep(100 + count)

import type { LeaseStatusList } from '@pool/contract/lease'
import { encodeRequest, HttpConnection, type HttpResponse } from '@pool/test-kit/http1.ts'
import { TOKEN } from '@pool/test-kit/lease-connection.ts'
import { until } from '@pool/test-kit/poll.ts'
import type { Client } from './client.ts'

/** A long-polling client with its own connection. */
export interface Waiter {
  readonly connection: HttpConnection
  /** Waits for a generation other than `generation`; `receivedAt` is on the clock of performance.now(). */
  readonly wait: (
    generation: number,
    seconds: number,
  ) => Promise<{ readonly response: HttpResponse; readonly receivedAt: number }>
}

const RESPONSE_MARGIN_MS = 60_000

export const openWaiter = async (port: number, slot: string, token = TOKEN): Promise<Waiter> => {
  const connection = await HttpConnection.open(port)
  const path = `/lease/${encodeURIComponent(slot)}`
  return {
    connection,
    wait: async (generation, seconds) => {
      const headers = [`Authorization: Bearer ${token}`, `If-None-Match: "${generation}"`, `Prefer: wait=${seconds}`]
      const timeoutMs = seconds * 1_000 + RESPONSE_MARGIN_MS
      const response = await connection.send(encodeRequest({ path, headers }), { timeoutMs })
      return { response, receivedAt: performance.now() }
    },
  }
}

/** The backlog of a listening socket is limited. */
const MAX_CONCURRENT_OPENS = 100

export const openWaiters = async (port: number, slot: string, count: number, token = TOKEN): Promise<Waiter[]> => {
  const waiters: Waiter[] = []
  while (waiters.length < count) {
    const batch = Math.min(MAX_CONCURRENT_OPENS, count - waiters.length)
    waiters.push(...(await Promise.all(Array.from({ length: batch }, () => openWaiter(port, slot, token)))))
  }
  return waiters
}

/** Resets the connections, which the witness notices, unlike a plain close. */
export const closeWaiters = (waiters: readonly Waiter[]): void => {
  for (const { connection } of waiters) connection.socket.resetAndDestroy()
}

/** For 2,000 waits on a busy machine. */
const BEGIN_TIMEOUT_MS = 60_000

export const countWaiters = async (client: Client, slot: string): Promise<number | undefined> => {
  const { text } = await client.send('GET', `/leases?slot=${encodeURIComponent(slot)}`)
  const { leases }: LeaseStatusList = JSON.parse(text)
  const [status] = leases
  return status && 'waiters' in status ? status.waiters : undefined
}

/** Resolves when the witness counts `count` waits of the slot. */
export const untilWaiting = (client: Client, slot: string, count: number): Promise<true> =>
  until(`${count} waits of ${slot}`, async () => (await countWaiters(client, slot)) === count, BEGIN_TIMEOUT_MS)

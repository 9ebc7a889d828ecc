import { setTimeout as sleep } from 'node:timers/promises'
import { head, openRaw, type RawAnswer, type RawConnection } from './raw.ts'

/** One who waits for a slot, on a connection of its own. */
export interface Waiter {
  readonly connection: RawConnection
  /** Asks for what comes after `generation`; resolves with the answer and when it came. */
  readonly wait: (generation: number, seconds: number) => Promise<{ readonly answer: RawAnswer; readonly at: number }>
}

export const openWaiter = async (port: number, slot: string): Promise<Waiter> => {
  const connection = await openRaw(port)
  return {
    connection,
    wait: async (generation, seconds) => {
      const headers = { 'If-None-Match': `"${generation}"`, Prefer: `wait=${seconds}` }
      connection.write(head('GET', `/lease/${encodeURIComponent(slot)}`, headers))
      const answer = await connection.answer()
      return { answer, at: performance.now() }
    },
  }
}

/** So many at a time: a listening socket's queue is finite. */
const OPENED_AT_ONCE = 100

export const openWaiters = async (port: number, slot: string, count: number): Promise<Waiter[]> => {
  const waiters: Waiter[] = []
  while (waiters.length < count) {
    const batch = Math.min(OPENED_AT_ONCE, count - waiters.length)
    waiters.push(...(await Promise.all(Array.from({ length: batch }, () => openWaiter(port, slot)))))
  }
  return waiters
}

/** There is no telling from outside that a wait has begun; the machine gets this long to begin so many. */
export const untilWaiting = (count: number): Promise<void> => sleep(100 + count)

import { setTimeout as sleep } from 'node:timers/promises'
import type { LeaseWorker } from '../environment/service.ts'
import { openConnectionPool } from '../load/connection-pool.ts'
import { oneOf } from '../load/subject.ts'
import type { Book } from './lease-book.ts'
import { listRequest } from './lease-book.ts'

const AT_ONCE = 16
const COPIED_WITHIN_MS = 60_000
const LOOK_EVERY_MS = 100
const granted = oneOf(200)

/**
 * The first write of each slot. Of the witness it is followed by a copy to KV, and that is waited for: what the first
 * write costs is to be over when something else is measured.
 */
export const seed = async (
  port: number,
  worker: LeaseWorker,
  name: string,
  book: Book,
  as: Parameters<Book['write']>[1] = {},
): Promise<void> => {
  using pool = await openConnectionPool(port, AT_ONCE)
  let next = 0
  const work = async () => {
    for (let slot = next++; slot < book.slots; slot = next++) {
      const answer = await pool.send(book.write(slot, as))
      const fault = granted(answer)
      if (fault) throw new Error(`${worker}, the first write of a slot: ${fault}`)
      book.learn(slot, answer)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
  if (worker !== 'witness') return
  const until = performance.now() + COPIED_WITHIN_MS
  for (;;) {
    const { body } = await pool.send(listRequest(name))
    const { leases } = JSON.parse(body)
    if (leases.length === book.slots) return
    if (performance.now() > until) throw new Error(`the copies of ${book.slots} slots are not in KV: ${leases.length}`)
    await sleep(LOOK_EVERY_MS)
  }
}

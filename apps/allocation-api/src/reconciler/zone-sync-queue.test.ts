import { expect, test } from 'vitest'
import { NOTHING_SYNCED, type SyncResult } from './sync-zone.ts'
import type { WithZoneLock } from './zone-lock.ts'
import { ZoneSyncQueue } from './zone-sync-queue.ts'

const lock = { assertHeld: async () => {} }
const result = (version: number): SyncResult => ({
  applied: new Map([['acme', version]]),
  hasMore: false,
  hasFailed: false,
})

/** A queue whose lock and syncs the test controls. `locks` and `syncs` are those that wait for the test. */
const createFixture = () => {
  const locks: PromiseWithResolvers<boolean>[] = []
  const syncs: PromiseWithResolvers<SyncResult>[] = []
  const errors: unknown[] = []
  const outcomes: string[] = []
  const withZoneLock: WithZoneLock = async (_, work) => {
    const acquired = Promise.withResolvers<boolean>()
    locks.push(acquired)
    return (await acquired.promise) ? work(lock) : null
  }
  const sync = () => {
    const running = Promise.withResolvers<SyncResult>()
    syncs.push(running)
    return running.promise
  }
  const queue = new ZoneSyncQueue({
    zone: 'pool.test',
    withZoneLock,
    sync,
    onEnded: outcome => outcomes.push(outcome),
    onError: error => errors.push(error),
  })
  const turn = () => new Promise(resolve => setImmediate(resolve))
  return { queue, locks, syncs, errors, outcomes, turn }
}

test('a sync serves every request made before it holds the lock; later ones share the next sync', async () => {
  const { queue, locks, syncs, outcomes, turn } = createFixture()
  const first = [queue.request(), queue.request()]
  await turn()
  first.push(queue.request())
  locks[0]?.resolve(true)
  await turn()
  const second = [queue.request(), queue.request()]
  await turn()
  expect([locks.length, syncs.length]).toEqual([1, 1])
  syncs[0]?.resolve(result(1))
  expect(await Promise.all(first)).toEqual([result(1), result(1), result(1)])
  await turn()
  locks[1]?.resolve(true)
  await turn()
  syncs[1]?.resolve(result(2))
  expect(await Promise.all(second)).toEqual([result(2), result(2)])
  expect(outcomes).toEqual(['done', 'done'])
  expect(locks).toHaveLength(2)
})

test('without the lock the requests get the empty result', async () => {
  const { queue, locks, syncs, outcomes } = createFixture()
  const request = queue.request()
  locks[0]?.resolve(false)
  expect(await request).toEqual(NOTHING_SYNCED)
  expect(outcomes).toEqual(['busy'])
  expect(syncs).toHaveLength(0)
})

test('an error is reported, and its requests get the empty result', async () => {
  const { queue, locks, syncs, errors, outcomes, turn } = createFixture()
  const request = queue.request()
  locks[0]?.resolve(true)
  await turn()
  syncs[0]?.reject(new Error('no database'))
  expect(await request).toEqual(NOTHING_SYNCED)
  expect(errors).toEqual([new Error('no database')])
  expect(outcomes).toEqual(['failed'])
})

test('a sync that left names due is followed by another one', async () => {
  const { queue, locks, syncs, turn } = createFixture()
  void queue.request()
  locks[0]?.resolve(true)
  await turn()
  syncs[0]?.resolve({ ...result(1), hasMore: true })
  await turn()
  expect(locks).toHaveLength(2)
})

test('stop waits for accepted requests and accepts no more', async () => {
  const { queue, locks, syncs, turn } = createFixture()
  const accepted = queue.request()
  const stopped = queue.stop()
  expect(await queue.request()).toEqual(NOTHING_SYNCED)
  locks[0]?.resolve(true)
  await turn()
  syncs[0]?.resolve({ ...result(1), hasMore: true })
  expect((await accepted).applied).toEqual(result(1).applied)
  await stopped
  expect(locks).toHaveLength(1)
})

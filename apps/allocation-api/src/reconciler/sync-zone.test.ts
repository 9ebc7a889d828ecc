import { expect, test } from 'vitest'
import { NOTHING_SYNCED, type SyncResult } from './domain/plan.ts'
import { ZoneSyncQueue } from './sync-zone.ts'

const result = (version: number): SyncResult => ({
  applied: new Map([['acme', version]]),
  failed: new Map(),
  hasMore: false,
})

/** A queue whose syncs the test ends. */
const createFixture = () => {
  const syncs: PromiseWithResolvers<SyncResult | null>[] = []
  const errors: unknown[] = []
  const outcomes: string[] = []
  const queue = new ZoneSyncQueue({
    sync() {
      const running = Promise.withResolvers<SyncResult | null>()
      syncs.push(running)
      return running.promise
    },
    onEnded: outcome => outcomes.push(outcome),
    onError: error => errors.push(error),
  })
  const turn = () => new Promise(resolve => setImmediate(resolve))
  return { queue, syncs, errors, outcomes, turn }
}

test('a sync serves every request made before it starts; later ones share the next sync', async () => {
  const { queue, syncs, outcomes, turn } = createFixture()
  const first = queue.request()
  await turn()
  const second = [queue.request(), queue.request()]
  await turn()
  second.push(queue.request())
  expect(syncs).toHaveLength(1)
  syncs[0]?.resolve(result(1))
  expect(await first).toEqual(result(1))
  await turn()
  syncs[1]?.resolve(result(2))
  expect(await Promise.all(second)).toEqual([result(2), result(2), result(2)])
  expect(outcomes).toEqual(['done', 'done'])
  expect(syncs).toHaveLength(2)
})

test('without the lock the requests get the empty result', async () => {
  const { queue, syncs, outcomes } = createFixture()
  const request = queue.request()
  syncs[0]?.resolve(null)
  expect(await request).toEqual(NOTHING_SYNCED)
  expect(outcomes).toEqual(['busy'])
})

test('an error is reported, and its requests get the empty result', async () => {
  const { queue, syncs, errors, outcomes } = createFixture()
  const request = queue.request()
  syncs[0]?.reject(new Error('no database'))
  expect(await request).toEqual(NOTHING_SYNCED)
  expect(errors).toEqual([new Error('no database')])
  expect(outcomes).toEqual(['failed'])
})

test('a sync that left names due is followed by another one', async () => {
  const { queue, syncs, turn } = createFixture()
  void queue.request()
  syncs[0]?.resolve({ ...result(1), hasMore: true })
  await turn()
  expect(syncs).toHaveLength(2)
})

test('stop waits for accepted requests and accepts no more', async () => {
  const { queue, syncs } = createFixture()
  const accepted = queue.request()
  const stopped = queue.stop()
  expect(await queue.request()).toEqual(NOTHING_SYNCED)
  syncs[0]?.resolve({ ...result(1), hasMore: true })
  expect((await accepted).applied).toEqual(result(1).applied)
  await stopped
  expect(syncs).toHaveLength(1)
})

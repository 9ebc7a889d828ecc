import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createZoneLocks } from '../../src/reconciler/zone-lock.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

test('a zone lock outlasts the lifetime that the driver gives connections', async () => {
  // Otherwise 30 to 60 min. The driver reads it when a client is created.
  vi.stubEnv('PGMAX_LIFETIME', '1')
  const limits = { waitMs: 10_000, idleTimeoutMs: 30_000, timeoutMs: 5_000 }
  const [one, two] = [createZoneLocks(database.url, limits), createZoneLocks(database.url, limits)]
  const events: string[] = []
  const isHeld = Promise.withResolvers<void>()
  const first = one.withLock('pool.test', async lock => {
    isHeld.resolve()
    await sleep(2_500)
    await lock.assertHeld()
    events.push('first ends')
  })
  await isHeld.promise
  const second = two.withLock('pool.test', async () => {
    events.push('second starts')
  })
  await Promise.all([first, second])
  expect(events).toEqual(['first ends', 'second starts'])
  vi.unstubAllEnvs()
  await Promise.all([one.close(), two.close()])
})

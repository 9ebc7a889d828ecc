import { setTimeout as sleep } from 'node:timers/promises'
import { createDatabaseClient } from '@pool/database/client'
import { createSessions } from '@pool/database/sessions'
import { startTcpProxy } from '@pool/test-kit/tcp-proxy.ts'
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
  const create = () => createZoneLocks(database.url, limits, { silences: 0 })
  const [one, two] = [create(), create()]
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

test('after a server has vanished, no lock is requested on an idle connection to it', async () => {
  await using cleanup = new AsyncDisposableStack()
  const link = await startTcpProxy(Number(new URL(database.url).port))
  cleanup.defer(() => link.close())
  const url = Object.assign(new URL(database.url), { port: String(link.port) }).href
  const sessions = createSessions(() => performance.now())
  const pool = { applicationName: 'pool', maxConnections: 1, maxStatementMs: 100, sessions }
  const sql = createDatabaseClient(url, pool)
  cleanup.defer(() => sql.end({ timeout: 0 }))
  const locks = createZoneLocks(url, { waitMs: 60_000, idleTimeoutMs: 60_000, timeoutMs: 60_000 }, sessions)
  cleanup.defer(() => locks.close())
  // Each of the two waits until the other has its lock, so two connections are opened and then idle.
  const lockBoth = () => {
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    return Promise.all([
      locks.withLock('one.test', async () => {
        first.resolve()
        await second.promise
      }),
      locks.withLock('two.test', async () => {
        second.resolve()
        await first.promise
      }),
    ])
  }
  await lockBoth()
  await sql`select 1`
  link.abandon()
  await expect(sql`select 1`).rejects.toMatchObject({ code: 'ETIMEDOUT' })
  await lockBoth()
})

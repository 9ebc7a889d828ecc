import { createDatabaseClient } from '@pool/runtime/database/client'
import { until } from '@pool/test-kit/poll.ts'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

/**
 * The driver's behaviour after lost connections, on which the service relies. Without our patch of version 3.4.9, the pool
 * never recovers and a write to a closed socket ends the process. According to its code, a statement could also get the
 * result of another one, because the queue of sent statements outlives the session; the test asserts that it does not.
 * Without the patch, the rows after a statement that failed in the middle of its result were wrong: a reserved name
 * appeared free.
 */
describe('the driver after connection failures', () => {
  let database: TestDatabase
  let proxy: TcpProxy

  beforeAll(async () => {
    database = await createTestDatabase({ schema: false })
    proxy = await startTcpProxy(Number(new URL(database.url).port))
  })
  afterAll(async () => {
    await proxy.close()
    await database.drop()
  })
  const throughProxy = () => {
    const url = Object.assign(new URL(database.url), { port: String(proxy.port) }).href
    return createDatabaseClient(url, { maxConnections: 4, applicationName: 'driver' })
  }

  test('no statement gets the result of another, and the pool recovers after each reset', async () => {
    const sql = throughProxy()
    let sent = 0
    let answered = 0
    const wrong: unknown[] = []
    let isOver = false
    const client = async () => {
      while (!isOver) {
        sent += 1
        const own = sent
        try {
          const rows = await sql<
            { own: number }[]
          >`select ${own}::int as own, repeat('x', ${own % 2_000}::int) as filling`
          answered += 1
          if (rows.length !== 1 || rows[0]?.own !== own) wrong.push({ own, rows: rows.map(row => row.own) })
        } catch {
          // Immediately, before the driver has noticed that the connection is closed.
        }
      }
    }
    const clients = Array.from({ length: 32 }, client)
    const answers = (more: number) => {
      const enough = answered + more
      return until('the statements are answered', () => answered >= enough)
    }
    for (let round = 0; round < 60; round += 1) {
      await answers(50)
      proxy.resetAll()
    }
    await answers(200)
    isOver = true
    await Promise.all(clients)
    expect(wrong).toEqual([])
    await sql.end({ timeout: 1 })
  })

  // For example a list that an operator cancels (pg_cancel_backend) or a statement_timeout of the role ends.
  test('the rows of a statement that fails do not appear in the next result (postgres issue 1181)', async () => {
    const sql = createDatabaseClient(database.url, { maxConnections: 1, applicationName: 'driver' })
    const failing = () => sql`select 1 / (3 - i) from generate_series(1, 5) as i`
    const taken = () => sql`select 'taken' as state`
    for (const send of [taken, () => sql.unsafe(`select 'taken' as state`)]) {
      const [first, pipelined] = await Promise.allSettled([failing(), send()])
      expect(first).toMatchObject({ status: 'rejected', reason: { code: '22012' } })
      expect(pipelined).toEqual({ status: 'fulfilled', value: [{ state: 'taken' }] })
      await expect(failing()).rejects.toMatchObject({ code: '22012' })
      expect(await send()).toEqual([{ state: 'taken' }])
    }
    await sql.end({ timeout: 1 })
  })

  test('a transaction whose connection is reset is rejected without affecting others', async () => {
    const sql = throughProxy()
    for (let round = 0; round < 20; round += 1) {
      const transaction = sql.begin(async tx => {
        await tx`select 1`
        const slow = tx`select pg_sleep(5)`.then(
          () => 'answered',
          () => 'rejected',
        )
        await until('the statement runs', async () => {
          const running = await database.sql`
            select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`
          return running.length > 0
        })
        proxy.resetAll()
        expect(await slow).toBe('rejected')
        await tx`select 2`
      })
      await expect(transaction).rejects.toThrow()
    }
    expect(await sql`select 1 as one`).toEqual([{ one: 1 }])
    await sql.end({ timeout: 1 })
  })
})

// Our patch keeps this, and saves time.
test('a result has its rows, and what describes them is not listed', async () => {
  const database = await createTestDatabase({ schema: false })
  onTestFinished(() => database.drop())
  const rows = await database.sql`select 1 as one union all select 2`
  expect(Object.keys(rows)).toEqual(['0', '1'])
  expect(rows).toMatchObject({ count: 2, command: 'SELECT', columns: [{ name: 'one' }] })
  expect(rows.map(({ one }) => one)).toEqual([1, 2])
})

// Without our patch, the list of idle connections grew with each statement, and each searched all of it.
test('a statement costs the same after many, if some connections are always idle', async () => {
  const database = await createTestDatabase({ schema: false })
  onTestFinished(() => database.drop())
  const { sql } = database
  const execute = async (count: number) => {
    for (let i = 0; i < count; i += 1) await sql`select 1`
  }
  await Promise.all([execute(1), execute(1), execute(1)])
  const indexOf = vi.spyOn(Array.prototype, 'indexOf')
  onTestFinished(() => indexOf.mockRestore())
  await execute(200)
  const lengths = (indexOf.mock.contexts as readonly { readonly length: number }[]).map(({ length }) => length)
  expect(lengths.length).toBeGreaterThan(200)
  expect(Math.max(...lengths)).toBeLessThan(50)
})

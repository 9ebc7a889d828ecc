import { createDatabaseClient, createSessions } from '@pool/runtime/database/client'
import { until } from '@pool/test-kit/poll.ts'
import { startTcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { createZoneLocks, type ZoneLock, ZoneLockLostError } from '../../src/reconciler/locked-zone.ts'
import { createReconcilerRepository, isTransactionOpen, type LockLane } from '../../src/reconciler/repository.ts'
import { useTestDatabase } from '../support/database.ts'

const database = await useTestDatabase()

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
    const other = createDatabaseClient(database.url, { applicationName: 'lifetime', maxConnections: 1 })
    const readPid = async () => (await other<{ pid: number }[]>`select pg_backend_pid() as pid`)[0]?.pid
    const pid = await readPid()
    await until('the driver replaces a connection that is younger than that of the lock', async () => {
      return (await readPid()) !== pid
    })
    await other.end()
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
  const sessions = createSessions()
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

describe('the last statement of the work', () => {
  const limits = { waitMs: 10_000, idleTimeoutMs: 30_000, timeoutMs: 5_000 }
  let locks: ReturnType<typeof createZoneLocks>
  beforeAll(async () => {
    await database.sql`create table outcomes (name text primary key)`
    locks = createZoneLocks(database.url, limits, { silences: 0 })
  })
  afterAll(() => locks?.close())
  const save =
    (name: string) =>
    ({ sql, isHeld }: LockLane): Promise<boolean> =>
      sql<{ isHeld: boolean }[]>`
        with saved as (insert into outcomes (name) select ${name} where ${isHeld})
        select ${isHeld} as "isHeld"`.then(([row]) => row?.isHeld === true)
  const listOutcomes = async () =>
    (await database.sql<{ name: string }[]>`select name from outcomes`).map(row => row.name)
  const isOpen = async (transaction: string) => {
    const [row] = await database.sql<{ is: boolean }[]>`select ${isTransactionOpen(database.sql, transaction)} as is`
    return row?.is
  }

  const lose = async (lock: ZoneLock) => {
    await database.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'allocation-api zone' and datname = current_database() and state = 'idle in transaction'`
    // The driver notices the end of its connection, and opens another one for the next statement.
    await until('another session answers', () =>
      lock.assertHeld().then(
        () => false,
        error => error instanceof ZoneLockLostError,
      ),
    )
  }

  test('is committed with the transaction that holds the lock, which ends with it', async () => {
    const transaction = await locks.withLock('finish.test', async lock => {
      expect(await isOpen(lock.transaction)).toBe(true)
      await lock.finish(save('kept'))
      expect(await listOutcomes()).toEqual(['kept'])
      return lock.transaction
    })
    expect(await isOpen(transaction ?? '')).toBe(false)
    expect(await locks.withLock('finish.test', async () => 'free')).toBe('free')
  })

  test('has no effect after the lock is lost, and the loss is an error', async () => {
    const lost = locks.withLock('lost.test', async lock => {
      await lose(lock)
      expect(await isOpen(lock.transaction)).toBe(false)
      await lock.finish(save('lost'))
    })
    await expect(lost).rejects.toThrow(ZoneLockLostError)
    expect(await listOutcomes()).toEqual(['kept'])
    expect(await locks.withLock('lost.test', async () => 'free')).toBe('free')
  })

  test('the outcomes of a sync are stored while the lock is held, and not after it is lost', async () => {
    const { sql } = database
    const { saveOutcomes } = createReconcilerRepository(sql, { timeoutMs: limits.timeoutMs })
    await sql`
      insert into dns_names (zone, subdomain, version, desired, changed_at, next_attempt_at)
      values ('sync.test', 'acme', 1, '[]', now(), now()), ('sync.test', 'fails', 1, '[]', now(), now())`
    const none = { desired: [], detail: null, leftover: null } as const
    const withdrawn = { subdomain: 'acme', version: 1, event: 'withdrawn', ...none } as const
    const failing = {
      subdomain: 'fails',
      version: 1,
      desired: [],
      failure: 'provider',
      reason: '',
      retryDelayMs: 1,
      isTransient: false,
    } as const
    const ended = { isComplete: true, serial: null, firstDriftCheckMs: 1_000 }
    const outcomes = { applied: [withdrawn], failed: [failing], ...ended }
    const finish = (lock: ZoneLock) => lock.finish(lane => saveOutcomes('sync.test', outcomes, lane))
    const readStored = async () => [
      ...(await sql`select applied_version, failure from dns_names where zone = 'sync.test' order by subdomain`),
      ...(await sql`select event from allocation_history where pool_domain = 'sync.test' order by event`),
      ...(await sql`select zone from dns_zones where zone = 'sync.test'`),
    ]
    const before = await readStored()
    const lost = locks.withLock('sync.test', async lock => {
      await lose(lock)
      await finish(lock)
    })
    await expect(lost).rejects.toThrow(ZoneLockLostError)
    expect(await readStored()).toEqual(before)
    await locks.withLock('sync.test', finish)
    expect(await readStored()).toEqual([
      { applied_version: 1, failure: null },
      { applied_version: 0, failure: 'provider' },
      { event: 'failing' },
      { event: 'withdrawn' },
      { zone: 'sync.test' },
    ])
  })

  test('what is read first, and the last statement, take no round trips of their own', async () => {
    await using link = await startTcpProxy(Number(new URL(database.url).port)).then(proxy =>
      Object.assign(proxy, { [Symbol.asyncDispose]: () => proxy.close() }),
    )
    const url = Object.assign(new URL(database.url), { port: String(link.port) }).href
    const distant = createZoneLocks(url, limits, { silences: 0 })
    const work = (name: string) =>
      distant.withLock(
        'distant.test',
        (lock, names: readonly string[]) => lock.finish(save(name)).then(() => names),
        async sql =>
          (await sql<{ name: string }[]>`select name from outcomes where name <> ${name}`).map(row => row.name),
      )
    // The first two create the lock, and prepare the statements.
    await work('first')
    await work('second')
    // Far more than a busy machine needs to send the statements of one trip.
    link.delay(250)
    const before = link.roundTrips()
    expect(await work('third')).toEqual(['kept', 'first', 'second'])
    expect(link.roundTrips() - before).toBe(2)
    await distant.close()
  })
})

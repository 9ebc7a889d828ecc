import { createDatabaseClient, type Fragment } from '@pool/runtime/database/client'
import { until } from '@pool/test-kit/poll.ts'
import { createPrng } from '@pool/test-kit/prng.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createOperationsRepository } from '../../src/reconciler/operations-repository.ts'
import { createReconcilerRepository } from '../../src/reconciler/repository.ts'
import { createZoneLocks, updateLease, type ZoneLock, ZoneLockLostError } from '../../src/reconciler/zone-lock.ts'
import { truncateAllocations, useTestDatabase } from '../support/database.ts'

const database = await useTestDatabase()
const { sql } = database
const timeoutMs = 20_000
const repository = createReconcilerRepository(sql, { timeoutMs })
const createLocks = (leaseMs: number, waitMs = 0) => createZoneLocks(sql, { waitMs, leaseMs, timeoutMs })
/** Neither ends during a test. */
const [locks, others] = [createLocks(60_000), createLocks(60_000)]

const isFree = async (zone: string) => (await others.withLock(zone, async () => true)) ?? false
const change = (zone: string, columns: Fragment) => sql`update zone_leases set ${columns} where name = ${zone}`

test('one acquisition at a time has a lock, in one process and in two, and the next one after its end or its error', async () => {
  const zone = 'one.test'
  await locks.withLock(zone, async () => {
    expect(await locks.withLock(zone, async () => 'second')).toBeNull()
    expect(await isFree(zone)).toBe(false)
    expect(await isFree('another.test')).toBe(true)
  })
  expect(await isFree(zone)).toBe(true)
  await expect(locks.withLock(zone, () => Promise.reject(new Error('work')))).rejects.toThrow('work')
  await until('the lock is free', () => isFree(zone))
})

/** What another process did to the row while the lock was held. */
const events = [
  { event: 'nothing happened', done: sql`holder = holder`, isHeld: true },
  { event: 'another process took it', done: sql`holder = gen_random_uuid(), version = version + 1`, isHeld: false },
  { event: 'another process took and released it', done: sql`holder = null, version = version + 2`, isHeld: false },
]
const failing = {
  subdomain: 'fails',
  version: 1,
  desired: [],
  failure: 'provider',
  reason: '',
  retryDelayMs: 1,
  paceMs: 0,
} as const
const outcomes = {
  applied: [{ subdomain: 'acme', version: 1, event: 'withdrawn', desired: [], detail: null, leftover: null }],
  failed: [{ ...failing, isTransient: false }],
  isComplete: true,
  serial: null,
  firstDriftCheckMs: 1_000,
} as const
const attempted = [{ subdomain: 'acme', version: 1, deletedRecords: [] }]
const versions = [{ subdomain: 'acme', version: 1 }]
const caller = { actor: 'operator', address: null, requestId: 'test' } as const

const operations = createOperationsRepository(sql, { timeoutMs })
const orphans = [{ subdomain: 'orphan', target: { loadBalancerIP: '192.0.2.1' }, records: [], otherCount: 0 }] as never
const trusted = [{ ...versions[0], action: 'adopt', target: { loadBalancerIP: '192.0.2.1' }, desired: [] }] as never
const desired = [{ ...versions[0], desired: [{ name: 'acme', type: 'A', ttl: 60, values: ['192.0.2.1'] }] }] as never

/** Each statement of the work under a lock that writes. */
const writes: Record<string, (zone: string, lock: ZoneLock) => Promise<unknown>> = {
  markAttempted: (zone, lock) => lock.renewWith(lease => repository.markAttempted(zone, attempted, 'fake', lease)),
  raiseSerial: (zone, lock) => lock.renewWith(lease => repository.raiseSerial(zone, 'fake', lease)),
  saveOutcomes: (zone, lock) => lock.finish(lease => repository.saveOutcomes(zone, outcomes, lease)),
  stopWrites: (zone, { lease }) => repository.stopWrites(zone, 'database-older', lease),
  markDrifted: (zone, { lease }) => repository.markDrifted(zone, versions, lease),
  prune: (zone, { lease }) => repository.prune(zone, versions, lease),
  retryNow: (zone, { lease }) => repository.retryNow(zone, lease),
  adopt: (zone, { lease }) => operations.adopt(zone, orphans, caller, lease),
  remove: (zone, { lease }) => operations.remove(zone, orphans, caller, lease),
  keepUnknown: (zone, { lease }) => operations.keepUnknown(zone, ['unknown'], lease),
  freeUnknown: (zone, { lease }) => operations.freeUnknown(zone, [], lease),
  trustZone: (zone, { lease }) => operations.trustZone(zone, trusted, caller, lease),
  catchUpSerial: (zone, { lease }) => operations.catchUpSerial(zone, 9, lease),
  resumeWrites: (zone, { lease }) => operations.resumeWrites(zone, lease),
  republish: (zone, { lease }) => operations.republish(zone, desired, caller, lease),
}

describe.each(events)('when $event', ({ done, isHeld }) => {
  const readTables = async () =>
    sql`
      select (select jsonb_agg(n order by subdomain) from dns_names n) as names, (select jsonb_agg(z) from dns_zones z) as zones,
        (select jsonb_agg(w) from dns_zone_writes w) as writes, (select jsonb_agg(h) from allocation_history h) as history,
        (select jsonb_agg(a order by subdomain) from pool_allocations a) as allocations`

  test.each(Object.keys(writes))(`%s ${isHeld ? 'takes' : 'has no'} effect`, async write => {
    await truncateAllocations(sql)
    await sql`truncate dns_zones, dns_zone_writes`
    const zone = 'pool.test'
    await change(zone, sql`holder = null`)
    await sql`
      insert into dns_names (zone, subdomain, version, applied_version, desired, changed_at, next_attempt_at)
      values (${zone}, 'acme', 1, 0, '[]', now(), now() + interval '1 hour'), (${zone}, 'fails', 1, 0, '[]', now(), now())`
    await sql`
      insert into dns_zone_writes (zone, serial, stopped_cause, stopped_at)
      values (${zone}, 1, ${write === 'stopWrites' ? null : 'database-older'}, ${write === 'stopWrites' ? null : sql`now()`})`
    if (write === 'freeUnknown')
      await locks.withLock(zone, ({ lease }) => operations.keepUnknown(zone, ['unknown'], lease))
    const before = await readTables()
    const wrote = locks.withLock(zone, async lock => {
      await change(zone, done)
      await writes[write]?.(zone, lock)
    })
    await (isHeld ? wrote : expect(wrote).rejects.toThrow(/^zone lock lost: pool\.test$/))
    const after = await readTables()
    if (isHeld) expect(after).not.toEqual(before)
    else expect(after).toEqual(before)
  })
})

describe('a lease', () => {
  /** Long for every machine, and short for a test. */
  const leaseMs = 1_500
  /** A holder that died, so that nothing changes its row. */
  const die = (zone: string, changedAt = sql`now()`) => sql`
    insert into zone_leases (name, holder, version, changed_at) values (${zone}, gen_random_uuid(), 1, ${changedAt})`
  const timed = async (work: Promise<unknown>) => {
    const since = performance.now()
    await work
    return performance.now() - since
  }

  test.each([
    { clock: 'the clock of the database is right', changedAt: sql`now()` },
    { clock: 'it was set back by an hour', changedAt: sql`now() + interval '1 hour'` },
    { clock: 'it was set ahead by an hour', changedAt: sql`now() - interval '1 hour'` },
  ])('of a dead process ends after its time and not before, although $clock', async ({ clock, changedAt }) => {
    const zone = `${clock.replaceAll(' ', '-')}.test`
    await die(zone, changedAt)
    const waiter = createLocks(leaseMs, 60_000)
    expect(await timed(waiter.withLock(zone, async () => {}))).toBeGreaterThan(leaseMs)
    // A process that has looked several times, in vain, counts from its first look.
    await change(zone, sql`holder = gen_random_uuid()`)
    const patient = createLocks(leaseMs, 0)
    const acquire = until('the lease ends', () => patient.withLock(zone, async () => true))
    expect(await timed(acquire)).toBeLessThan(20 * leaseMs)
  })

  test('of a process that works is renewed, also while the provider is slow', async () => {
    const zone = 'slow.test'
    const [acquired, renewed] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const working = createLocks(leaseMs).withLock(zone, async lock => {
      acquired.resolve()
      await renewed.promise
      expect(lock.remainingMs()).toBeGreaterThan(0)
      await lock.finish(lease => repository.saveOutcomes(zone, { ...outcomes, applied: [], failed: [] }, lease))
    })
    await acquired.promise
    const waiter = createLocks(leaseMs)
    await until('the lease was renewed for three times its length', async () => {
      expect(await waiter.withLock(zone, async () => 'second')).toBeNull()
      const [row] = await sql<{ version: number }[]>`select version from zone_leases where name = ${zone}`
      return (row?.version ?? 0) > 12
    })
    renewed.resolve()
    await working
  })

  test('leaves no time for a call once it may be over, and counts it from before the renewal', async () => {
    const zone = 'paused.test'
    await createLocks(leaseMs).withLock(zone, async lock => {
      expect(lock.remainingMs()).toBeLessThan(leaseMs)
      // As if the process were paused: its timers do not run.
      for (const end = performance.now() + leaseMs; performance.now() < end; );
      expect(lock.remainingMs()).toBeLessThan(0)
      await lock.renewWith(async () => true)
      expect(lock.remainingMs()).toBeGreaterThan(0)
    })
  })

  test('that the process could not release is no obstacle to itself', async () => {
    const zone = 'unreleased.test'
    const lease = await locks.withLock(zone, async lock => lock.lease)
    // As after a crash of the server, which had not flushed the release.
    await change(zone, sql`holder = ${lease?.holder ?? null}`)
    expect(await isFree(zone)).toBe(false)
    expect(await locks.withLock(zone, async () => 'free')).toBe('free')
  })
})

describe('a build before leases, whose lock is a row in an open transaction', () => {
  const lockAsBefore = async <Result>(zone: string, work: () => Promise<Result>) => {
    await sql`insert into dns_zone_locks (name) values (${zone}) on conflict do nothing`
    return sql.begin(async tx => {
      const held =
        await tx`select name from dns_zone_locks where name = ${zone} and set_config('lock_timeout', '10000ms', true) is not null for update`
      return held.length > 0 ? work() : null
    })
  }

  test('and one with leases exclude each other', async () => {
    const zone = 'rolling.test'
    expect(await lockAsBefore(zone, () => isFree(zone))).toBe(false)
    await locks.withLock(zone, async () => expect(await lockAsBefore(zone, async () => 'both')).toBeNull())
    expect(await lockAsBefore(zone, async () => 'free')).toBe('free')
  })

  test('gets the lock of a process that died, after a minute', async () => {
    const zone = 'rollback.test'
    await sql`insert into zone_leases (name, holder) values (${zone}, gen_random_uuid())`
    expect(await lockAsBefore(zone, async () => 'free')).toBeNull()
    await change(zone, sql`changed_at = now() - interval '61 seconds'`)
    expect(await lockAsBefore(zone, async () => 'free')).toBe('free')
  })
})

describe('with leases that end at any moment', () => {
  const REPLICAS = 4
  const TURNS = 50
  const LEASE_MS = 12
  const clients = Array.from({ length: REPLICAS }, () =>
    createDatabaseClient(database.url, { maxConnections: 2, applicationName: 'race', maxStatementMs: timeoutMs }),
  )
  beforeAll(() => sql`create table race (value integer not null)`)
  afterAll(() => Promise.all(clients.map(client => client.end({ timeout: 1 }))))

  test('no two holders write: each write is based on the one before it', async () => {
    await sql`insert into race values (0)`
    const prng = createPrng(1)
    const results = { written: 0, lost: 0 }
    const take = async (client: (typeof clients)[number], withLock: ReturnType<typeof createZoneLocks>['withLock']) => {
      const work = async (lock: ZoneLock) => {
        const [read] = await client<{ value: number }[]>`select value from race`
        for (let i = prng.below(4); i > 0; i -= 1) await client`select pg_sleep(${(2 * LEASE_MS) / 3_000})`
        await lock.finish(async lease => {
          const rows = await client`
            with ${updateLease(client, lease, 'release')}
            update race set value = ${(read?.value ?? 0) + 1} from lease returning value`
          return rows.length > 0
        })
        results.written += 1
      }
      await withLock('race.test', work).catch(error => {
        if (!(error instanceof ZoneLockLostError)) throw error
        results.lost += 1
      })
    }
    await Promise.all(
      clients.map(async (client, index) => {
        // Half of them renew too late for the others, as a process does that was paused.
        const leaseMs = index % 2 ? LEASE_MS : 60_000
        const { withLock } = createZoneLocks(client, { waitMs: 60_000, leaseMs, timeoutMs })
        for (let turn = 0; turn < TURNS || results.lost === 0; turn += 1) await take(client, withLock)
      }),
    )
    const [race] = await sql<{ value: number }[]>`select value from race`
    expect(race?.value).toBe(results.written)
    expect(results.written).toBeGreaterThan(0)
  })
})

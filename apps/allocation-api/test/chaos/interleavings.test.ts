import { randomUUID } from 'node:crypto'
import { createDatabaseClient, type Sql } from '@pool/database/client'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Caller, Granted } from '../../src/allocation/domain/types.ts'
import { type AllocationRepository, createAllocationRepository } from '../../src/allocation/repository.ts'
import { createRecords } from '../../src/dns/domain/rrset.ts'
import { createReconcilerRepository, type DueName } from '../../src/reconciler/repository.ts'
import { createTestDatabase, missingDsn, type TestDatabase, testDsn } from '../support/database.ts'
import { holdLock, lockRow, untilSessionsWait } from '../support/locks.ts'

if (!testDsn) process.stderr.write(`${missingDsn}\n`)

const poolDomain = 'pool.test'
const caller: Caller = { actor: 'in-cluster', address: null, requestId: 'interleavings' }
const limits = { timeoutMs: 20_000 }
const ttlMs = 600_000
/** None of these calls has an Idempotency-Key, so none can be refused its turn. */
const decided = <Decision>(decision: Decision | 'key-taken'): Decision => {
  if (decision === 'key-taken') throw new Error('refused its turn without a key')
  return decision
}
const desired = createRecords('acme.pool.test', '192.0.2.1', { names: ['@', '*'], ttl: 60 })

/**
 * Not by luck: a transaction of the test holds the row, the first statement queues for it, then the second, and only
 * then it lets go. Postgres grants a row in the order of the queue. Both statements have taken their snapshot by then,
 * so the second decides about a row that is newer than what it sees: where a decision rests on the snapshot, it shows.
 */
describe.skipIf(!testDsn)('statements that meet at one row', () => {
  let database: TestDatabase
  const connections: Sql[] = []
  let stores: [AllocationRepository, AllocationRepository, AllocationRepository, AllocationRepository]
  const storeOfItsOwn = (): AllocationRepository => {
    const sql = createDatabaseClient(database.url, { maxConnections: 1, applicationName: 'interleavings' })
    connections.push(sql)
    return createAllocationRepository(sql, limits)
  }

  const name = { poolDomain, subdomain: 'acme' }
  const reserve = async (store: AllocationRepository) =>
    decided(await store.reserve({ ...name, createdBy: '' }, ttlMs, caller))
  const commit = async (store: AllocationRepository, reservationToken: string) =>
    decided(
      await store.commit(
        { ...name, reservationToken, sovereignFQDN: 'acme.pool.test', loadBalancerIP: '192.0.2.1' },
        desired,
        caller,
      ),
    )
  const release = async (store: AllocationRepository, reservationToken?: string) =>
    decided(await store.release({ ...name, reservationToken }, caller))
  const renew = (store: AllocationRepository, reservationToken: string) =>
    store.renew({ ...name, reservationToken }, { ttlMs, maxAgeMs: 10 * ttlMs }, caller)

  const granted = async (): Promise<Granted> => {
    const decision = await reserve(stores[0])
    if (decision.kind !== 'granted') throw new Error(`not granted: ${decision.kind}`)
    return decision
  }

  /** What both come to when the first is first in the queue for the row and the second is behind it. */
  const inThisOrder = async <First, Second>(
    first: () => Promise<First>,
    second: () => Promise<Second>,
  ): Promise<[First, Second]> => {
    const held = await lockRow(database.sql, name)
    const one = first()
    await untilSessionsWait(database.sql, 1, '%', 5_000).catch(() => {})
    const two = second()
    // A statement that does not queue where it should is shown by what both come to.
    await untilSessionsWait(database.sql, 2, '%', 5_000).catch(() => {})
    await held.release()
    return Promise.all([one, two])
  }

  const rows = () => database.sql<{ state: string; token: string }[]>`
    select state, reservation_token as token from pool_allocations`
  const demanded = () => database.sql<{ subdomain: string; desired: unknown[]; version: number }[]>`
    select subdomain, desired, version from dns_names`
  const events = async () =>
    (await database.sql<{ event: string }[]>`select event from allocation_history order by id`).map(row => row.event)

  beforeAll(async () => {
    database = await createTestDatabase()
    stores = [storeOfItsOwn(), storeOfItsOwn(), storeOfItsOwn(), storeOfItsOwn()]
    // Each connection opened and each statement known beforehand: only the row's queue decides who comes first.
    for (const store of stores) await store.deleteExpired(1)
  })
  afterAll(async () => {
    for (const sql of connections) await sql.end({ timeout: 1 })
    await database?.drop()
  })
  afterEach(async () => {
    await database.sql`truncate pool_allocations, dns_names`
    await database.sql`alter table allocation_history disable trigger allocation_history_append_only`
    await database.sql`truncate allocation_history`
    await database.sql`alter table allocation_history enable trigger allocation_history_append_only`
  })

  test('a release behind a commit withdraws the records that the commit has just stated', async () => {
    const { reservationToken } = await granted()
    const [committed, released] = await inThisOrder(
      () => commit(stores[1], reservationToken),
      () => release(stores[2]),
    )
    expect(committed.kind).toBe('committed')
    expect(released).toMatchObject({ kind: 'released', allocation: { state: 'active' } })
    expect(await rows()).toEqual([])
    const [statement, ...others] = await demanded()
    expect(others).toEqual([])
    expect(statement?.desired).toEqual([])
    expect(released).toMatchObject({ version: statement?.version })
    expect(committed.kind === 'committed' && (statement?.version ?? 0) > committed.version).toBe(true)
    expect(await events()).toEqual(['reserved', 'committed', 'released'])
  })

  test('a commit behind a release finds nothing, and no records are demanded', async () => {
    const { reservationToken } = await granted()
    const [released, committed] = await inThisOrder(
      () => release(stores[2]),
      () => commit(stores[1], reservationToken),
    )
    expect(released).toMatchObject({ kind: 'released', version: null, allocation: { state: 'reserved' } })
    expect(committed.kind).toBe('not-found')
    expect(await rows()).toEqual([])
    expect(await demanded()).toEqual([])
    expect(await events()).toEqual(['reserved', 'released'])
  })

  test('a commit behind a commit of the same token is told that the name is active', async () => {
    const { reservationToken } = await granted()
    const [first, second] = await inThisOrder(
      () => commit(stores[1], reservationToken),
      () => commit(stores[2], reservationToken),
    )
    expect(first.kind).toBe('committed')
    expect(second.kind).toBe('already-active')
    expect(await events()).toEqual(['reserved', 'committed'])
  })

  test('a release behind a release finds nothing and states nothing', async () => {
    const { reservationToken } = await granted()
    await commit(stores[1], reservationToken)
    const [first, second] = await inThisOrder(
      () => release(stores[1]),
      () => release(stores[2]),
    )
    expect(first.kind).toBe('released')
    expect(second.kind).toBe('not-found')
    expect(await demanded()).toHaveLength(1)
    expect(await events()).toEqual(['reserved', 'committed', 'released'])
  })

  test('a reserve behind a release of the same name takes it or is refused; either way one row at the most', async () => {
    await granted()
    const [released, again] = await inThisOrder(
      () => release(stores[1]),
      () => reserve(stores[2]),
    )
    expect(released.kind).toBe('released')
    expect(again.kind).toBe('granted')
    expect(await rows()).toMatchObject([{ state: 'reserved', token: (again as Granted).reservationToken }])
  })

  test('of two that wait for one expired row, the first takes it over and the second sees that it is live', async () => {
    const { reservationToken: old } = await granted()
    await database.advance(ttlMs)
    const [first, second] = await inThisOrder(
      () => reserve(stores[1]),
      () => reserve(stores[2]),
    )
    expect(first.kind).toBe('granted')
    expect(second.kind).toBe('conflict')
    expect(await rows()).toEqual([{ state: 'reserved', token: (first as Granted).reservationToken }])
    expect((first as Granted).reservationToken).not.toBe(old)
    expect(await events()).toEqual(['reserved', 'expired', 'reserved'])
  })

  test('of two that wait for one free name, whose taker gives up, one gets it', async () => {
    const held = await holdLock(
      database.sql,
      tx => tx`
        insert into pool_allocations
          (pool_domain, subdomain, state, reserved_at, expires_at, reservation_token, created_by)
        values (${poolDomain}, 'acme', 'reserved', now(), now() + interval '1 hour', ${randomUUID()}, '')`,
    )
    const both = [reserve(stores[1]), reserve(stores[2])]
    await untilSessionsWait(database.sql, 2)
    await held.release()
    const decisions = await Promise.all(both)
    expect(decisions.map(decision => decision.kind).sort()).toEqual(['conflict', 'granted'])
    const winner = decisions.find(decision => decision.kind === 'granted')
    expect(await rows()).toMatchObject([{ token: winner?.reservationToken }])
    expect(await events()).toEqual(['reserved'])
  })

  test('a commit or a renewal behind a take-over of the expired row is refused for its token', async () => {
    const { reservationToken: old } = await granted()
    await database.advance(ttlMs)
    const [taken, committed] = await inThisOrder(
      () => reserve(stores[1]),
      () => commit(stores[2], old),
    )
    expect(taken.kind).toBe('granted')
    expect(committed.kind).toBe('token-mismatch')

    await database.advance(ttlMs)
    const [takenAgain, renewed] = await inThisOrder(
      () => reserve(stores[1]),
      () => renew(stores[2], (taken as Granted).reservationToken),
    )
    expect(takenAgain.kind).toBe('granted')
    expect(renewed.kind).toBe('token-mismatch')
    expect(await rows()).toMatchObject([{ state: 'reserved', token: (takenAgain as Granted).reservationToken }])
    expect(await demanded()).toEqual([])
  })

  test('a release with a foreign token behind another write changes nothing', async () => {
    const { reservationToken: old } = await granted()
    const held = await holdLock(
      database.sql,
      tx => tx`update pool_allocations set created_by = 'somebody' where subdomain = 'acme'`,
    )
    const released = release(stores[1], randomUUID())
    await untilSessionsWait(database.sql, 1)
    await held.release()
    expect((await released).kind).toBe('token-mismatch')
    expect(await rows()).toMatchObject([{ token: old }])
  })

  test('a renewal keeps the row from the sweeper, which passes by the one that somebody holds', async () => {
    const { reservationToken } = await granted()
    const held = await lockRow(database.sql, name)
    const renewed = renew(stores[1], reservationToken)
    await untilSessionsWait(database.sql, 1)
    await database.sql`select 1`
    expect(await stores[2].deleteExpired(10)).toBe(0)
    await held.release()
    expect((await renewed).kind).toBe('renewed')
    expect(await rows()).toHaveLength(1)
  })

  test('the sweeper does not wait for an expired row that somebody holds, and takes it afterwards', async () => {
    await granted()
    await database.advance(ttlMs)
    const held = await lockRow(database.sql, name)
    expect(await stores[1].deleteExpired(10)).toBe(0)
    await held.release()
    expect(await stores[1].deleteExpired(10)).toBe(1)
    expect(await events()).toEqual(['reserved', 'expired'])
  })

  test('a take-over that finds the expired row being swept reserves the name, with one expiry in the history', async () => {
    await granted()
    await database.advance(ttlMs)
    for (const end of ['release', 'commit'] as const) {
      // The sweeper's own statement, not yet committed.
      const held = await holdLock(database.sql, tx =>
        createAllocationRepository(tx as unknown as Sql, limits).deleteExpired(10),
      )
      const taken = reserve(stores[1])
      await untilSessionsWait(database.sql, 1)
      await held[end]()
      expect((await taken).kind).toBe('granted')
      await database.advance(ttlMs)
    }
    expect(await events()).toEqual(['reserved', 'expired', 'reserved', 'expired', 'reserved'])
  })
})

/** A statement that was given up, or whose process died, may still be carried out, late: behind what came after it. */
describe.skipIf(!testDsn)('progress that is told late', () => {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase()
  })
  afterAll(() => database?.drop())
  const events = async () =>
    (await database.sql<{ event: string }[]>`select event from allocation_history order by id`).map(row => row.event)

  test('an old "applied" does not undo what a newer pass has told', async () => {
    const store = createAllocationRepository(database.sql, limits)
    const repository = createReconcilerRepository(database.sql, limits)
    const name = { poolDomain, subdomain: 'late' }
    const records = createRecords('late.pool.test', '192.0.2.1', { names: ['@', '*'], ttl: 60 })
    const due = async (): Promise<DueName[]> => repository.listDue(poolDomain, 10)
    const tell = (names: readonly DueName[]) =>
      repository.markApplied(
        poolDomain,
        names.map(name => ({ ...name, event: 'published', detail: null })),
      )
    const pass = async () => {
      const names = await due()
      await repository.markAttempted(poolDomain, names)
      await tell(names)
    }
    const activate = async () => {
      const decision = decided(await store.reserve({ ...name, createdBy: '' }, ttlMs, caller))
      if (decision.kind !== 'granted') throw new Error(decision.kind)
      const { reservationToken } = decision
      await store.commit(
        { ...name, reservationToken, sovereignFQDN: 'late.pool.test', loadBalancerIP: '192.0.2.1' },
        records,
        caller,
      )
    }
    await activate()
    await pass()
    await store.release(name, caller)
    const withdrawal = await due()
    await activate()
    await pass()
    const published = await database.sql`select version, applied_version, owned from dns_names`
    expect(published).toMatchObject([{ owned: [{ name: 'late.pool.test' }, { name: '*.late.pool.test' }] }])

    // Of the withdrawal, which has been replaced and is at the provider no more.
    const before = await events()
    await tell(withdrawal)
    expect(await events()).toEqual(before)
    expect(await database.sql`select version, applied_version, owned from dns_names`).toEqual(published)
  })

  test('an order of a version that was replaced meanwhile is remembered all the same', async () => {
    const store = createAllocationRepository(database.sql, limits)
    const repository = createReconcilerRepository(database.sql, limits)
    const name = { poolDomain, subdomain: 'replaced' }
    const decision = decided(await store.reserve({ ...name, createdBy: '' }, ttlMs, caller))
    if (decision.kind !== 'granted') throw new Error(decision.kind)
    const { reservationToken } = decision
    const address = { sovereignFQDN: 'replaced.pool.test', loadBalancerIP: '192.0.2.1' }
    await store.commit({ ...name, reservationToken, ...address }, desired, caller)
    const due = (await repository.listDue(poolDomain, 10)).filter(one => one.subdomain === 'replaced')
    await store.release(name, caller)
    await repository.markAttempted(poolDomain, due)
    expect((await repository.listDue(poolDomain, 10)).filter(one => one.subdomain === 'replaced')).toMatchObject([
      { desired: [], hasInFlightWrite: true },
    ])
  })

  test('an old "applied" does not hide that a newer version may be at the provider already', async () => {
    const store = createAllocationRepository(database.sql, limits)
    const repository = createReconcilerRepository(database.sql, limits)
    const name = { poolDomain, subdomain: 'hidden' }
    const fqdn = 'hidden.pool.test'
    const activate = async (address: string) => {
      const decision = decided(await store.reserve({ ...name, createdBy: '' }, ttlMs, caller))
      if (decision.kind !== 'granted') throw new Error(decision.kind)
      const { reservationToken } = decision
      const records = createRecords(fqdn, address, { names: ['@'], ttl: 60 })
      await store.commit({ ...name, reservationToken, sovereignFQDN: fqdn, loadBalancerIP: address }, records, caller)
    }
    const due = () => repository.listDue(poolDomain, 10)
    await activate('192.0.2.1')
    await store.release(name, caller)
    const withdrawal = await due()
    await activate('192.0.2.2')
    await repository.markAttempted(poolDomain, await due())
    const before = await database.sql`select * from dns_names where subdomain = 'hidden'`
    expect(before.map(row => row.attempted_version === row.version && row.applied_version === 0)).toEqual([true])
    await repository.markApplied(
      poolDomain,
      withdrawal.map(one => ({ ...one, event: 'withdrawn', detail: null })),
    )
    expect(await database.sql`select * from dns_names where subdomain = 'hidden'`).toEqual(before)
  })
})

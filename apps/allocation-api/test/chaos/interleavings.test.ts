import { randomUUID } from 'node:crypto'
import { createDatabaseClient, type Sql } from '@pool/runtime/database/client'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createRecords } from '../../src/dns/domain/target.ts'
import { type DuplicateRequest, isDuplicate } from '../../src/idempotency/idempotency.ts'
import type { Caller } from '../../src/naming/naming.ts'
import type { DueName } from '../../src/reconciler/domain/name.ts'
import type { AppliedName, AttemptedName } from '../../src/reconciler/domain/plan.ts'
import { createReconcilerRepository, type SyncOutcomes } from '../../src/reconciler/repository.ts'
import { createTestDatabase, type TestDatabase, truncateAllocations, useTestDatabase } from '../support/database.ts'
import { holdLock, lockRow, runInOrder, untilSessionsWait, withLease } from '../support/locks.ts'
import {
  createTokenRepository,
  type GrantedToken,
  type TokenRepository,
  tokenDigest,
} from '../support/token-repository.ts'

const poolDomain = 'pool.test'
const caller: Caller = { actor: 'in-cluster', address: null, requestId: 'interleavings' }
const ttlMs = 600_000
const limits = { reservation: { ttlMs, maxAgeMs: 10 * ttlMs }, timeoutMs: 20_000 }
/** Excludes a result that only requests with an Idempotency-Key can have. */
const expectDecision = <Decision extends { readonly kind: string }>(
  decision: Decision | DuplicateRequest,
): Decision => {
  if (isDuplicate(decision)) throw new Error('duplicate-request without an Idempotency-Key')
  return decision
}
const desired = createRecords('acme.pool.test', { loadBalancerIP: '192.0.2.1' }, { names: ['@', '*'], ttl: 60 })

const toAttempted = (name: DueName): AttemptedName => ({ ...name, deletedRecords: [] })
const toOutcomes = (names: readonly DueName[], event: AppliedName['event']): SyncOutcomes => ({
  applied: names.map(name => ({ ...name, event, detail: null, leftover: null })),
  failed: [],
  isComplete: true,
  serial: null,
  firstDriftCheckMs: 3_600_000,
})

/**
 * These interleavings are deterministic. A transaction of the test locks the row until both statements wait for it, and
 * Postgres grants a row lock in the order of the queue. Both statements then have their snapshot, so the second one
 * decides about a row that is newer than its snapshot. A decision that uses the snapshot fails here.
 */
describe('two statements that wait for the same row', () => {
  let database: TestDatabase
  const connections: Sql[] = []
  let stores: [TokenRepository, TokenRepository, TokenRepository, TokenRepository]
  const createStore = (): TokenRepository => {
    const sql = createDatabaseClient(database.url, { maxConnections: 1, applicationName: 'interleavings' })
    connections.push(sql)
    return createTokenRepository(sql, limits)
  }

  const name = { poolDomain, subdomain: 'acme' }
  const reserve = async (store: TokenRepository) =>
    expectDecision(await store.reserve({ ...name, createdBy: '' }, caller))
  const commit = async (store: TokenRepository, reservationToken: string) =>
    expectDecision(
      await store.commit(
        { ...name, reservationToken, sovereignFQDN: 'acme.pool.test', loadBalancerIP: '192.0.2.1' },
        desired,
        caller,
      ),
    )
  const release = async (store: TokenRepository, reservationToken?: string) =>
    expectDecision(await store.release({ ...name, reservationToken }, caller))
  const renew = (store: TokenRepository, reservationToken: string) => store.renew({ ...name, reservationToken })

  const reserveName = async (): Promise<GrantedToken> => {
    const decision = await reserve(stores[0])
    if (decision.kind !== 'granted') throw new Error(`not granted: ${decision.kind}`)
    return decision
  }

  const rows = () => database.sql<{ state: string; digest: string }[]>`
    select state, encode(token_hash, 'hex') as digest from pool_allocations`
  const desiredRows = () => database.sql<{ subdomain: string; desired: unknown[]; version: number }[]>`
    select subdomain, desired, version from dns_names`
  const events = async () =>
    (await database.sql<{ event: string }[]>`select event from allocation_history order by id`).map(row => row.event)

  beforeAll(async () => {
    database = await createTestDatabase()
    stores = [createStore(), createStore(), createStore(), createStore()]
    // Opens each connection and prepares its statements, so that only the queue decides the order.
    for (const store of stores) await store.deleteExpired(1)
  })
  afterAll(async () => {
    for (const sql of connections) await sql.end({ timeout: 1 })
    await database?.drop()
  })
  afterEach(async () => {
    await truncateAllocations(database.sql)
  })

  test('a release queued behind a commit withdraws the records of the commit', async () => {
    const { reservationToken } = await reserveName()
    const [committed, released] = await runInOrder(
      database.sql,
      name,
      () => commit(stores[1], reservationToken),
      () => release(stores[2]),
    )
    expect(committed.kind).toBe('committed')
    expect(released).toMatchObject({ kind: 'released', allocation: { state: 'active' } })
    expect(await rows()).toEqual([])
    const [statement, ...others] = await desiredRows()
    expect(others).toEqual([])
    expect(statement?.desired).toEqual([])
    expect(released).toMatchObject({ version: statement?.version })
    expect(committed.kind === 'committed' && (statement?.version ?? 0) > committed.version).toBe(true)
    expect(await events()).toEqual(['reserved', 'committed', 'released'])
  })

  test('a commit queued behind a release returns not-found, and no records are desired', async () => {
    const { reservationToken } = await reserveName()
    const [released, committed] = await runInOrder(
      database.sql,
      name,
      () => release(stores[2]),
      () => commit(stores[1], reservationToken),
    )
    expect(released).toMatchObject({ kind: 'released', version: null, allocation: { state: 'reserved' } })
    expect(committed.kind).toBe('not-found')
    expect(await rows()).toEqual([])
    expect(await desiredRows()).toEqual([])
    expect(await events()).toEqual(['reserved', 'released'])
  })

  test('a commit queued behind a commit with the same token returns already-active', async () => {
    const { reservationToken } = await reserveName()
    const [first, second] = await runInOrder(
      database.sql,
      name,
      () => commit(stores[1], reservationToken),
      () => commit(stores[2], reservationToken),
    )
    expect(first.kind).toBe('committed')
    expect(second.kind).toBe('already-active')
    expect(await events()).toEqual(['reserved', 'committed'])
  })

  test('a release queued behind a release returns not-found and changes no records', async () => {
    const { reservationToken } = await reserveName()
    await commit(stores[1], reservationToken)
    const [first, second] = await runInOrder(
      database.sql,
      name,
      () => release(stores[1]),
      () => release(stores[2]),
    )
    expect(first.kind).toBe('released')
    expect(second.kind).toBe('not-found')
    expect(await desiredRows()).toHaveLength(1)
    expect(await events()).toEqual(['reserved', 'committed', 'released'])
  })

  test('a reserve queued behind a release of the same name is granted, and there is one row', async () => {
    await reserveName()
    const [released, again] = await runInOrder(
      database.sql,
      name,
      () => release(stores[1]),
      () => reserve(stores[2]),
    )
    expect(released.kind).toBe('released')
    expect(again.kind).toBe('granted')
    expect(await rows()).toMatchObject([
      { state: 'reserved', digest: tokenDigest((again as GrantedToken).reservationToken) },
    ])
  })

  test('of two reserves that wait for an expired row, the first is granted and the second returns conflict', async () => {
    const { reservationToken: old } = await reserveName()
    await database.advance(ttlMs)
    const [first, second] = await runInOrder(
      database.sql,
      name,
      () => reserve(stores[1]),
      () => reserve(stores[2]),
    )
    expect(first.kind).toBe('granted')
    expect(second.kind).toBe('conflict')
    expect(await rows()).toEqual([{ state: 'reserved', digest: tokenDigest((first as GrantedToken).reservationToken) }])
    expect((first as GrantedToken).reservationToken).not.toBe(old)
    expect(await events()).toEqual(['reserved', 'expired', 'reserved'])
  })

  test('of two reserves that wait for an insert that is rolled back, exactly one is granted', async () => {
    const held = await holdLock(
      database.sql,
      tx => tx`
        insert into pool_allocations
          (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
        values (${poolDomain}, 'acme', 'reserved', now(), now() + interval '1 hour', sha256('held'), '')`,
    )
    const both = [reserve(stores[1]), reserve(stores[2])]
    await untilSessionsWait(database.sql, 2)
    await held.release()
    const decisions = await Promise.all(both)
    expect(decisions.map(decision => decision.kind).sort()).toEqual(['conflict', 'granted'])
    const winner = decisions.find(decision => decision.kind === 'granted')
    expect(await rows()).toMatchObject([{ digest: tokenDigest(winner?.reservationToken ?? '') }])
    expect(await events()).toEqual(['reserved'])
  })

  test('a commit or a renewal queued behind a reserve of the expired name returns token-mismatch', async () => {
    const { reservationToken: old } = await reserveName()
    await database.advance(ttlMs)
    const [reserved, committed] = await runInOrder(
      database.sql,
      name,
      () => reserve(stores[1]),
      () => commit(stores[2], old),
    )
    expect(reserved.kind).toBe('granted')
    expect(committed.kind).toBe('token-mismatch')

    await database.advance(ttlMs)
    const [reservedAgain, renewed] = await runInOrder(
      database.sql,
      name,
      () => reserve(stores[1]),
      () => renew(stores[2], (reserved as GrantedToken).reservationToken),
    )
    expect(reservedAgain.kind).toBe('granted')
    expect(renewed.kind).toBe('token-mismatch')
    expect(await rows()).toMatchObject([
      { state: 'reserved', digest: tokenDigest((reservedAgain as GrantedToken).reservationToken) },
    ])
    expect(await desiredRows()).toEqual([])
  })

  test('a release with the token of another reservation, queued behind another write, changes nothing', async () => {
    const { reservationToken: old } = await reserveName()
    const held = await holdLock(
      database.sql,
      tx => tx`update pool_allocations set created_by = 'other' where subdomain = 'acme'`,
    )
    const released = release(stores[1], randomUUID())
    await untilSessionsWait(database.sql, 1)
    await held.release()
    expect((await released).kind).toBe('token-mismatch')
    expect(await rows()).toMatchObject([{ digest: tokenDigest(old) }])
  })

  test('the sweeper skips a locked row, and a renewal that waits for it succeeds', async () => {
    const { reservationToken } = await reserveName()
    const held = await lockRow(database.sql, name)
    const renewed = renew(stores[1], reservationToken)
    await untilSessionsWait(database.sql, 1)
    await database.sql`select 1`
    expect(await stores[2].deleteExpired(10)).toBe(0)
    await held.release()
    expect((await renewed).kind).toBe('renewed')
    expect(await rows()).toHaveLength(1)
  })

  test('the sweeper skips an expired row that is locked, and deletes it after the unlock', async () => {
    await reserveName()
    await database.advance(ttlMs)
    const held = await lockRow(database.sql, name)
    expect(await stores[1].deleteExpired(10)).toBe(0)
    await held.release()
    expect(await stores[1].deleteExpired(10)).toBe(1)
    expect(await events()).toEqual(['reserved', 'expired'])
  })

  test('a reserve that waits for the sweeper to delete the expired row is granted, with one expiry in the history', async () => {
    await reserveName()
    await database.advance(ttlMs)
    for (const endSweep of ['release', 'commit'] as const) {
      // The statement of the sweeper, not yet committed.
      const held = await holdLock(database.sql, tx =>
        createTokenRepository(tx as unknown as Sql, limits).deleteExpired(10),
      )
      const reserved = reserve(stores[1])
      await untilSessionsWait(database.sql, 1)
      await held[endSweep]()
      expect((await reserved).kind).toBe('granted')
      await database.advance(ttlMs)
    }
    expect(await events()).toEqual(['reserved', 'expired', 'reserved', 'expired', 'reserved'])
  })
})

/** A statement that timed out, or whose process died, can still take effect late, after newer statements. */
describe('progress that is recorded late', async () => {
  const database = await useTestDatabase()
  const events = async () =>
    (await database.sql<{ event: string }[]>`select event from allocation_history order by id`).map(row => row.event)
  type Repository = ReturnType<typeof createReconcilerRepository>
  const markAttempted = ({ markAttempted }: Repository, names: readonly DueName[]) =>
    withLease(database.sql, poolDomain, lease => markAttempted(poolDomain, names.map(toAttempted), 'local', lease))
  const saveOutcomes = ({ saveOutcomes }: Repository, names: readonly DueName[], event: 'published' | 'withdrawn') =>
    withLease(database.sql, poolDomain, lease => saveOutcomes(poolDomain, toOutcomes(names, event), lease))

  test('a late "applied" of an older version does not overwrite the progress of a newer sync', async () => {
    const store = createTokenRepository(database.sql, limits)
    const repository = createReconcilerRepository(database.sql, limits)
    const name = { poolDomain, subdomain: 'late' }
    const records = createRecords('late.pool.test', { loadBalancerIP: '192.0.2.1' }, { names: ['@', '*'], ttl: 60 })
    const due = async (): Promise<DueName[]> => repository.listDue(poolDomain, 10)
    const markApplied = (names: readonly DueName[]) => saveOutcomes(repository, names, 'published')
    const sync = async () => {
      const names = await due()
      await markAttempted(repository, names)
      await markApplied(names)
    }
    const activate = async () => {
      const decision = expectDecision(await store.reserve({ ...name, createdBy: '' }, caller))
      if (decision.kind !== 'granted') throw new Error(decision.kind)
      const { reservationToken } = decision
      await store.commit(
        { ...name, reservationToken, sovereignFQDN: 'late.pool.test', loadBalancerIP: '192.0.2.1' },
        records,
        caller,
      )
    }
    await activate()
    await sync()
    await store.release(name, caller)
    const withdrawal = await due()
    await activate()
    await sync()
    const published = await database.sql`select version, applied_version, owned from dns_names`
    expect(published).toMatchObject([{ owned: [{ name: 'late.pool.test' }, { name: '*.late.pool.test' }] }])

    // A newer version has replaced the withdrawal at the provider.
    const before = await events()
    await markApplied(withdrawal)
    expect(await events()).toEqual(before)
    expect(await database.sql`select version, applied_version, owned from dns_names`).toEqual(published)
  })

  test('an attempted write is recorded even if a newer version has replaced its version', async () => {
    const store = createTokenRepository(database.sql, limits)
    const repository = createReconcilerRepository(database.sql, limits)
    const name = { poolDomain, subdomain: 'replaced' }
    const decision = expectDecision(await store.reserve({ ...name, createdBy: '' }, caller))
    if (decision.kind !== 'granted') throw new Error(decision.kind)
    const { reservationToken } = decision
    const address = { sovereignFQDN: 'replaced.pool.test', loadBalancerIP: '192.0.2.1' }
    await store.commit({ ...name, reservationToken, ...address }, desired, caller)
    const due = (await repository.listDue(poolDomain, 10)).filter(due => due.subdomain === 'replaced')
    await store.release(name, caller)
    await markAttempted(repository, due)
    expect((await repository.listDue(poolDomain, 10)).filter(due => due.subdomain === 'replaced')).toMatchObject([
      { desired: [], hasInFlightWrite: true },
    ])
  })

  test('a late "applied" of an older version does not hide a write in flight of a newer version', async () => {
    const store = createTokenRepository(database.sql, limits)
    const repository = createReconcilerRepository(database.sql, limits)
    const name = { poolDomain, subdomain: 'hidden' }
    const fqdn = 'hidden.pool.test'
    const activate = async (address: string) => {
      const decision = expectDecision(await store.reserve({ ...name, createdBy: '' }, caller))
      if (decision.kind !== 'granted') throw new Error(decision.kind)
      const { reservationToken } = decision
      const records = createRecords(fqdn, { loadBalancerIP: address }, { names: ['@'], ttl: 60 })
      await store.commit({ ...name, reservationToken, sovereignFQDN: fqdn, loadBalancerIP: address }, records, caller)
    }
    const due = () => repository.listDue(poolDomain, 10)
    await activate('192.0.2.1')
    await store.release(name, caller)
    const withdrawal = await due()
    await activate('192.0.2.2')
    await markAttempted(repository, await due())
    const before = await database.sql`select * from dns_names where subdomain = 'hidden'`
    expect(before.map(row => row.attempted_version === row.version && row.applied_version === 0)).toEqual([true])
    await saveOutcomes(repository, withdrawal, 'withdrawn')
    expect(await database.sql`select * from dns_names where subdomain = 'hidden'`).toEqual(before)
  })
})

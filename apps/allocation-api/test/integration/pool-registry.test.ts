import { beforeEach, describe, expect, test } from 'vitest'
import { createPoolRegistry } from '../../src/allocation/pool-registry.ts'
import { createAllocationReader } from '../../src/allocation/reader.ts'
import { hashToken } from '../../src/lib/token.ts'
import type { Caller } from '../../src/naming/naming.ts'
import { useTestDatabase } from '../support/database.ts'
import { holdLock, untilSessionsWait } from '../support/locks.ts'
import { createTokenRepository } from '../support/token-repository.ts'

const caller: Caller = { actor: 'operator', address: null, requestId: 'r' }
const TTL_MS = 600_000
const MINUTE_MS = 60_000
const database = await useTestDatabase({ connections: 6 })
beforeEach(async () => {
  const { sql } = database
  await sql`truncate pool_allocations, dns_names, dns_zones, pools`
})

const options = { reservation: { ttlMs: TTL_MS, maxAgeMs: TTL_MS }, timeoutMs: 5_000 }
const createReplica = (...managedDomains: string[]) => {
  return createPoolRegistry(database.sql, { managedDomains, timeoutMs: 5_000 })
}
const reserve = (poolDomain: string, subdomain: string) =>
  createTokenRepository(database.sql, options).reserve({ poolDomain, subdomain, createdBy: '' }, caller)
const findState = async (poolDomain: string, subdomain: string) =>
  (await createAllocationReader(database.sql, options).findStates([{ poolDomain, subdomain }]))[0]

describe('start', () => {
  test('registers the pools; alone, it blocks no label', async () => {
    const replica = createReplica('pool.test', 'other.test')
    expect(await replica.start()).toEqual([])
    expect(replica.pools()).toEqual({
      managed: ['pool.test', 'other.test'],
      draining: [],
      known: ['pool.test', 'other.test'],
    })
    expect(await database.sql`select from pool_allocations`).toHaveLength(0)
  })

  test.each([
    ['at', 'acme.pool.test'],
    ['below', 'x.acme.pool.test'],
    ['far below', 'z.y.x.acme.pool.test'],
  ])('a pool %s a granted name is not served, and stays unknown to the others', async (_, pool) => {
    expect((await reserve('pool.test', 'acme')).kind).toBe('granted')
    expect(await createReplica('pool.test', pool).start()).toEqual([{ pool, name: 'acme.pool.test' }])
    const first = createReplica('pool.test')
    await first.start()
    expect(first.pools().known).toEqual(['pool.test'])
  })

  test('the granted name may be in a pool that is in no list', async () => {
    await reserve('old.test', 'acme')
    expect(await createReplica('acme.old.test').start()).toEqual([{ pool: 'acme.old.test', name: 'acme.old.test' }])
  })

  test('a pool beside or above a granted name is served', async () => {
    await reserve('pool.test', 'acme')
    expect(await createReplica('pool.test', 'acm.pool.test', 'e.pool.test', 'test').start()).toEqual([])
  })

  test('an expired reservation does not keep a pool out, although no replica has swept it', async () => {
    await reserve('pool.test', 'acme')
    await database.advance(TTL_MS)
    expect(await createReplica('pool.test', 'acme.pool.test').start()).toEqual([])
    expect(await findState('pool.test', 'acme')).toBe('pool')
    const history = await database.sql<{ event: string }[]>`
      select event from allocation_history where subdomain = 'acme' order by id desc limit 2`
    expect(history.map(({ event }) => event)).toEqual(['expired', 'reserved'])
  })

  test.each(['released', 'reserved again by its former client, in vain,'])(
    'a name in its cool-off that was %s does not keep a pool out, and cannot be taken back',
    async how => {
      const repository = createTokenRepository(database.sql, { ...options, coolOffMs: 2 * TTL_MS })
      const name = { poolDomain: 'pool.test', subdomain: 'acme' }
      const takeBack = (token: string) =>
        repository.reserve({ ...name, createdBy: '' }, caller, { tokenHash: hashToken(token) })
      const outcome = await reserve('pool.test', 'acme')
      const reservationToken = outcome.kind === 'granted' ? outcome.reservationToken : ''
      const target = { ...name, reservationToken, sovereignFQDN: 'acme.pool.test', loadBalancerIP: '192.0.2.1' }
      await repository.commit(target, [], caller)
      await repository.release({ ...name, reservationToken }, caller)
      if (how !== 'released') {
        expect(await takeBack(reservationToken)).toMatchObject({ kind: 'granted' })
        expect(await createReplica('pool.test', 'acme.pool.test').start()).toHaveLength(1)
        await database.advance(TTL_MS)
      }
      expect(await findState('pool.test', 'acme')).toMatchObject({ kind: 'cooling-off' })
      expect(await createReplica('pool.test', 'acme.pool.test').start()).toEqual([])
      expect(await takeBack(reservationToken)).toEqual({ kind: 'conflict' })
      expect(await findState('pool.test', 'acme')).toBe('pool')
    },
  )

  test('an active name keeps a pool out', async () => {
    const outcome = await reserve('pool.test', 'acme')
    const reservationToken = outcome.kind === 'granted' ? outcome.reservationToken : ''
    const address = { sovereignFQDN: 'acme.pool.test', loadBalancerIP: '192.0.2.1' }
    const name = { poolDomain: 'pool.test', subdomain: 'acme' }
    await createTokenRepository(database.sql, options).commit({ ...name, reservationToken, ...address }, [], caller)
    expect(await createReplica('pool.test', 'acme.pool.test').start()).toHaveLength(1)
  })

  test('a released name of which a lineage still has infrastructure keeps a pool out', async () => {
    const repository = createTokenRepository(database.sql, options)
    const name = { poolDomain: 'pool.test', subdomain: 'acme' }
    const outcome = await reserve('pool.test', 'acme')
    const reservationToken = outcome.kind === 'granted' ? outcome.reservationToken : ''
    await repository.hold({ ...name, reservationToken }, '0a000000-0000-4000-8000-000000000001')
    await repository.release({ ...name, reservationToken }, caller)
    expect(await createReplica('pool.test', 'acme.pool.test').start()).toHaveLength(1)
  })
})

describe('the rollout of a longer list', () => {
  test('the label that covers the new pool can no longer be reserved, also by a replica that does not know the pool', async () => {
    const first = createReplica('pool.test')
    await first.start()
    await createReplica('pool.test', 'a.pool.test').start()
    expect(first.pools().known).toEqual(['pool.test'])
    expect(await reserve('pool.test', 'a')).toEqual({ kind: 'conflict' })
    expect(await findState('pool.test', 'a')).toBe('pool')
    await first.refresh()
    expect(first.pools()).toMatchObject({ managed: ['pool.test'], draining: [], known: ['pool.test', 'a.pool.test'] })
  })

  test('replicas with lists that have nothing in common', async () => {
    await createReplica('b.a.pool.test').start()
    await createReplica('pool.test').start()
    expect(await findState('pool.test', 'a')).toBe('pool')
  })

  test('a blocked label is not found by any other operation, and is not counted', async () => {
    await createReplica('pool.test', 'a.pool.test').start()
    const repository = createTokenRepository(database.sql, options)
    const reader = createAllocationReader(database.sql, options)
    const name = { poolDomain: 'pool.test', subdomain: 'a' }
    const token = { ...name, reservationToken: '11111111-2222-4333-8444-555555555555' }
    expect(await repository.renew(token)).toEqual({ kind: 'not-found' })
    expect(await repository.release(name, caller)).toEqual({ kind: 'not-found' })
    const commit = { ...token, sovereignFQDN: 'a.pool.test', loadBalancerIP: '192.0.2.1' }
    expect(await repository.commit(commit, [], caller)).toEqual({ kind: 'not-found' })
    expect(await reader.find(name)).toBeNull()
    expect(await reader.list('pool.test', { after: '', limit: 10 })).toEqual([])
    expect(await reader.countByState()).toEqual([])
    expect(await repository.deleteExpired(10)).toBe(0)
  })

  test('a reservation of the label that is in progress: the new replica waits, and is not served', async () => {
    await createReplica('pool.test').start()
    const held = await holdLock(
      database.sql,
      tx => tx`
        insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
        values ('pool.test', 'a', 'reserved', now(), now() + interval '1 h', sha256('x'), '')`,
    )
    const starting = createReplica('pool.test', 'a.pool.test').start()
    await untilSessionsWait(database.sql, 1, '%insert into pool_allocations%')
    await held.commit()
    expect(await starting).toEqual([{ pool: 'a.pool.test', name: 'a.pool.test' }])
  })

  test('of a reservation and a start at the same moment, exactly one succeeds', async () => {
    const outcomes = new Set<string>()
    for (let round = 0; round < 200; round += 1) {
      const label = `r${round}`
      const isRegistered = async () =>
        (await database.sql`select from pools where domain = ${`${label}.pool.test`}`).length
      // Half of the reservations begin between the statements of the start.
      const reserveDuringStart = async () => {
        while (round % 2 === 0 && !(await isRegistered()));
        return reserve('pool.test', label)
      }
      const replica = createReplica('pool.test', `${label}.pool.test`)
      const [covered, decision] = await Promise.all([replica.start(), reserveDuringStart()])
      const outcome = `${covered.length === 0 ? 'started' : 'refused'}, ${decision.kind}`
      expect(['started, conflict', 'refused, granted']).toContain(outcome)
      outcomes.add(outcome)
    }
    expect(outcomes.size).toBe(2)
  })

  test('twenty replicas with two lists start at the same moment', async () => {
    const replicas = Array.from({ length: 20 }, (_, i) =>
      i % 2 === 0 ? createReplica('pool.test', 'c.test') : createReplica('a.pool.test', 'b.c.test'),
    )
    expect((await Promise.all(replicas.map(replica => replica.start()))).flat()).toEqual([])
    expect([await findState('pool.test', 'a'), await findState('c.test', 'b')]).toEqual(['pool', 'pool'])
  })
})

describe('a pool that leaves the list', () => {
  test('with names it is draining, whatever their state; with a withdrawal that is not applied too', async () => {
    await reserve('reserved.test', 'a')
    await database.sql`
      insert into dns_names (zone, subdomain, version, desired, changed_at, next_attempt_at)
      values ('records.test', 'a', 1, '[]', now(), now())`
    const replica = createReplica('pool.test')
    await replica.start()
    expect(replica.pools().draining).toEqual(['records.test', 'reserved.test'])
  })

  test('without names and records it is forgotten after ten minutes: its zone, and the label that it blocked', async () => {
    await createReplica('pool.test', 'a.pool.test').start()
    await database.sql`
      insert into dns_zones (zone, next_drift_check_at) values ('a.pool.test', now()), ('pool.test', now())`
    const replica = createReplica('pool.test')
    await replica.start()
    const zones = async () => (await database.sql`select zone from dns_zones order by 1`).map(({ zone }) => zone)
    await database.advance(9 * MINUTE_MS)
    await replica.refresh()
    expect([await findState('pool.test', 'a'), await zones()]).toEqual(['pool', ['a.pool.test', 'pool.test']])
    // The first refresh no longer knows the pool; its label was confirmed when it did.
    await database.advance(2 * MINUTE_MS)
    await replica.refresh()
    expect([replica.pools().known, await zones()]).toEqual([['pool.test'], ['pool.test']])
    await database.advance(10 * MINUTE_MS)
    await replica.refresh()
    expect(await findState('pool.test', 'a')).toBeNull()
    expect((await reserve('pool.test', 'a')).kind).toBe('granted')
  })

  test('as long as one replica lists it, nothing is forgotten', async () => {
    const [first, second] = [createReplica('pool.test'), createReplica('pool.test', 'a.pool.test')]
    await first.start()
    await second.start()
    for (let i = 0; i < 5; i += 1) {
      await database.advance(5 * MINUTE_MS)
      await second.refresh()
      await first.refresh()
    }
    expect(await findState('pool.test', 'a')).toBe('pool')
  })

  test('its records, and its zone with them, are never forgotten while a name has any', async () => {
    await database.sql`
      insert into dns_names (zone, subdomain, version, desired, changed_at, next_attempt_at, attempted_version, attempts, failure, last_error)
      values ('gone.test', 'a', 2, '[]', now(), now(), 1, 1, 'zone', 'There is no such zone.')`
    await database.sql`insert into dns_zones (zone, next_drift_check_at) values ('gone.test', now())`
    const replica = createReplica('pool.test')
    await replica.start()
    await replica.refresh()
    expect(await database.sql`select from dns_names`).toHaveLength(1)
    expect(await database.sql`select from dns_zones`).toHaveLength(1)
  })

  test('a withdrawal in a zone that never existed ends, and the zone is not checked any more', async () => {
    await database.sql`
      insert into dns_names (zone, subdomain, version, desired, changed_at, next_attempt_at, attempts, failure, last_error)
      values ('never.test', 'a', 2, '[]', now(), now(), 5, 'zone', 'There is no such zone.')`
    await database.sql`insert into dns_zones (zone, next_drift_check_at) values ('never.test', now())`
    const replica = createReplica('pool.test')
    await replica.start()
    expect(replica.pools().draining).toEqual(['never.test'])
    await replica.refresh()
    await replica.refresh()
    expect(replica.pools().draining).toEqual([])
    expect(await database.sql`select from dns_names`).toHaveLength(0)
    expect(await database.sql`select from dns_zones`).toHaveLength(0)
  })
})

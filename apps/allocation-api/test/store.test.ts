import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Caller } from '../src/allocation/allocation.ts'
import { createReader, type Reader } from '../src/allocation/reader.ts'
import { createStore, type Store } from '../src/allocation/store.ts'
import { sweep } from '../src/allocation/sweeper.ts'
import { connect } from '../src/database/connect.ts'
import type { RecordSet } from '../src/dns/record-set.ts'
import { createTestDatabase, lacksDsn, type TestDatabase, testDsn } from './support/database.ts'

const TTL = 600_000
const caller: Caller = { actor: 'in-cluster', address: '192.0.2.7', requestId: 'req-1' }
const name = { poolDomain: 'pool.test', subdomain: 'acme' }
const foreign = '00000000-0000-4000-8000-000000000000'
const records = [{ name: 'acme.pool.test', type: 'A', ttl: 300, values: ['192.0.2.1'] }]

describe.skipIf(!testDsn)(`the store (${testDsn ? 'real Postgres' : lacksDsn})`, () => {
  let database: TestDatabase
  let store: Store
  let reader: Reader

  beforeAll(async () => {
    database = await createTestDatabase()
    store = createStore(database.sql, { timeoutMs: 5_000 })
    reader = createReader(database.sql, { timeoutMs: 5_000 })
  })
  afterAll(() => database.drop())
  beforeEach(async () => {
    await database.sql`delete from pool_allocations`
    await database.sql`delete from dns_names`
  })

  const reserve = () => store.reserve({ ...name, createdBy: 'wizard' }, TTL, caller)
  const reserved = async () => {
    const decision = await reserve()
    if (decision.kind !== 'granted') throw new Error(decision.kind)
    return decision
  }
  const commit = (reservationToken: string, desired: readonly RecordSet[] = records) =>
    store.commit(
      { ...name, reservationToken, sovereignFQDN: 'acme.pool.test', loadBalancerIP: '192.0.2.1' },
      desired,
      caller,
    )
  const history = async () =>
    (await database.sql`select event from allocation_history order by id desc limit 3`).map(row => row.event)

  test('reserve happy path: a token of version 4, and a lifetime to the millisecond', async () => {
    const { allocation, reservationToken } = await reserved()
    expect(allocation).toMatchObject({ ...name, state: 'reserved', createdBy: 'wizard' })
    expect(Date.parse(allocation.expiresAt) - Date.parse(allocation.reservedAt)).toBe(TTL)
    expect(reservationToken).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(await reader.heldState(name)).toBe('reserved')
  })

  test('a reserve race gives one reservation, and a conflict to each loser', async () => {
    const decisions = await Promise.all(Array.from({ length: 50 }, reserve))
    const winners = decisions.filter(decision => decision.kind === 'granted')
    expect(winners).toHaveLength(1)
    expect(decisions.filter(decision => decision.kind === 'conflict')).toHaveLength(49)
    const [row] = await database.sql`select reservation_token from pool_allocations`
    expect(row?.reservation_token).toBe(winners[0]?.kind === 'granted' && winners[0].reservationToken)
  })

  test('expiry frees the name without any sweep; the next reservation has a token of its own', async () => {
    const first = await reserved()
    await database.advance(TTL - 5_000)
    expect(await reserve()).toEqual({ kind: 'conflict' })
    await database.advance(5_001)
    expect(await reader.heldState(name)).toBeNull()
    const second = await reserved()
    expect(second.reservationToken).not.toBe(first.reservationToken)
    expect(await history()).toEqual(['reserved', 'expired', 'reserved'])
    expect(await commit(first.reservationToken)).toEqual({ kind: 'token-mismatch' })
  })

  test('commit happy path: active, without expiry, and with the records that it must have', async () => {
    const { reservationToken } = await reserved()
    const decision = await commit(reservationToken)
    expect(decision).toMatchObject({ kind: 'committed', allocation: { state: 'active', loadBalancerIP: '192.0.2.1' } })
    expect(await reader.get(name)).toMatchObject({ state: 'active', dns: { status: 'pending' } })
    const [row] = await database.sql`select desired, version from dns_names`
    expect(row?.desired).toEqual(records)
    expect(decision).toHaveProperty('version', row?.version)
    await database.advance(100 * TTL)
    expect(await reader.heldState(name)).toBe('active')
  })

  test.each([
    ['another token', foreign],
    ['no UUID', 'x'],
    ['nothing', ''],
    ["somebody's SQL", "' or true --"],
  ])('commit with %s as token: a mismatch, and nothing changes', async (_, token) => {
    const { reservationToken } = await reserved()
    expect(await commit(token)).toEqual({ kind: 'token-mismatch' })
    expect(await reader.heldState(name)).toBe('reserved')
    expect(await database.sql`select from dns_names`).toHaveLength(0)
    expect((await commit(reservationToken)).kind).toBe('committed')
  })

  test('release removes the row, says what it was, and states that there must be no records', async () => {
    const { reservationToken } = await reserved()
    await commit(reservationToken)
    expect(await store.release({ ...name, reservationToken: foreign }, caller)).toEqual({ kind: 'token-mismatch' })
    const released = await store.release(name, caller)
    expect(released).toMatchObject({ kind: 'released', allocation: { state: 'active', dns: { status: 'pending' } } })
    expect(await database.sql`select from pool_allocations`).toHaveLength(0)
    expect(await database.sql`select desired from dns_names`).toEqual([{ desired: [] }])
    expect(await store.release(name, caller)).toEqual({ kind: 'not-found' })
  })

  test('what was desired before is remembered, of a name that comes and goes all the time the latest 120 record sets', async () => {
    const addresses: string[] = []
    for (let round = 1; round <= 130; round += 1) {
      const { reservationToken } = await reserved()
      const address = `192.0.2.${round}`
      await commit(reservationToken, [{ name: 'acme.pool.test', type: 'A', ttl: 300, values: [address] }])
      await store.release(name, caller)
      addresses.unshift(address)
    }
    const [row] = await database.sql<{ former: { values: string[] }[] }[]>`select former from dns_names`
    expect(row?.former.flatMap(set => set.values)).toEqual(addresses.slice(0, 120))
  })

  test('release of a reservation has no records to withdraw', async () => {
    await reserved()
    expect(await store.release(name, caller)).toMatchObject({ kind: 'released', version: null })
    expect(await database.sql`select from dns_names`).toHaveLength(0)
  })

  test('the sweeper deletes what has expired and nothing else, batch after batch', async () => {
    await database.sql`
      insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, reservation_token, created_by)
      select 'pool.test', 'old' || n, 'reserved', now() - interval '2 h', now() - interval '1 h', gen_random_uuid(), ''
      from generate_series(1, 2500) n`
    await reserved()
    let deleted = 0
    const run = sweep({
      deleteExpired: store.deleteExpired,
      forgetKeys: async () => 0,
      onDeleted: count => {
        deleted += count
      },
      now: () => 0,
      rest: async () => {},
    })
    await run(new AbortController().signal)
    expect(deleted).toBe(2_500)
    expect(await database.sql`select subdomain from pool_allocations`).toEqual([{ subdomain: 'acme' }])
    const [swept] = await database.sql`select count(*)::int as n from allocation_history where actor = 'sweeper'`
    expect(swept?.n).toBe(2_500)
  })

  test('the sweeper skips a row that somebody holds, and is not held up by it', async () => {
    await reserved()
    await database.advance(2 * TTL)
    await database.sql.begin(async tx => {
      await tx`select from pool_allocations for update`
      expect(await store.deleteExpired(10)).toBe(0)
    })
    expect(await store.deleteExpired(10)).toBe(1)
  })

  test('a version of the records is never given twice, not even to a name that was gone in between', async () => {
    const versions: (number | null)[] = []
    for (let round = 0; round < 3; round += 1) {
      const { reservationToken } = await reserved()
      const committed = await commit(reservationToken)
      if (committed.kind === 'committed') versions.push(committed.version)
      await database.sql`delete from dns_names`
      const released = await store.release(name, caller)
      if (released.kind === 'released') versions.push(released.version)
      await database.sql`delete from dns_names`
    }
    expect(versions).toHaveLength(6)
    expect(versions).toEqual([...new Set(versions)].sort((a, b) => Number(a) - Number(b)))
  })

  test('a page of a list reads as many rows as it shows, wherever in the pool it stands', async () => {
    await database.sql`
      insert into pool_allocations (pool_domain, subdomain, state, reserved_at, reservation_token, created_by,
        sovereign_fqdn, load_balancer_ip, committed_at)
      select 'pool.test', 'n' || n, 'active', now(), gen_random_uuid(), '', 'x.test', '192.0.2.1', now()
      from generate_series(1, 30000) n`
    await database.sql`
      insert into dns_names (zone, subdomain, version, applied_version, desired, desired_since, next_attempt_at)
      select pool_domain, subdomain, 1, 1, '[]', now(), now() from pool_allocations`
    await database.sql`vacuum analyze pool_allocations, dns_names`
    const one = connect(database.url, { connections: 1, applicationName: 'page' })
    const readSoFar = async () => {
      await one`select pg_stat_force_next_flush()`
      const [row] = await one<{ read: number }[]>`
        select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int8 as read from pg_stat_user_tables
        where relname in ('pool_allocations', 'dns_names')`
      return row?.read ?? 0
    }
    const before = await readSoFar()
    const page = await createReader(one, { timeoutMs: 5_000 }).page('pool.test', { after: 'n8', limit: 500 })
    const read = (await readSoFar()) - before
    await one.end()
    expect(page).toHaveLength(500)
    expect(read).toBeGreaterThanOrEqual(1_000)
    expect(read).toBeLessThan(1_100)
  })

  test('the look-ups of every request go by index, in a pool of any size', async () => {
    await database.sql`
      insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, reservation_token, created_by)
      select 'big.test', 'n' || n, 'reserved', now(), now() + interval '1 h', gen_random_uuid(), ''
      from generate_series(1, 50000) n`
    await database.sql`analyze pool_allocations`
    for (const statement of [
      "select state from pool_allocations a where a.pool_domain = 'big.test' and a.subdomain = 'n7'",
      "select * from pool_allocations a where a.pool_domain = 'big.test' and a.subdomain > 'n7' order by a.subdomain limit 1000",
      "select * from pool_allocations where state = 'reserved' and expires_at <= now() order by expires_at limit 1000",
    ]) {
      const plan = await database.sql.unsafe(`explain ${statement}`)
      const text = plan.map(row => row['QUERY PLAN']).join('\n')
      expect(text).toContain('Index Scan')
      expect(text).not.toContain('Seq Scan')
      expect(text).not.toContain('Sort')
    }
  })
})

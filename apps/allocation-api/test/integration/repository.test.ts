import { randomBytes } from 'node:crypto'
import { createDatabaseClient } from '@pool/runtime/database/client'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sweepExpired } from '../../src/allocation/expired-sweeper.ts'
import { type AllocationReader, createAllocationReader } from '../../src/allocation/reader.ts'
import type { RecordSet } from '../../src/dns/domain/rrset.ts'
import { createClaim } from '../../src/idempotency/idempotency.ts'
import type { Caller, PoolName } from '../../src/naming/naming.ts'
import { repositoryOptions, useTestDatabase } from '../support/database.ts'
import { holdLock, lockRow, untilSessionsWait } from '../support/locks.ts'
import {
  createTokenRepository,
  type ReserveWithCaller,
  type TokenRepository,
  tokenDigest,
} from '../support/token-repository.ts'

const TTL = repositoryOptions.reservation.ttlMs
const caller: Caller = { actor: 'in-cluster', address: '192.0.2.7', requestId: 'req-1' }
const name = { poolDomain: 'pool.test', subdomain: 'acme' }
const foreign = '00000000-0000-4000-8000-000000000000'
const records = [{ name: 'acme.pool.test', type: 'A', ttl: 300, values: ['192.0.2.1'] }]

describe('the repository', async () => {
  const database = await useTestDatabase()
  let store: TokenRepository
  let reader: AllocationReader
  beforeAll(async () => {
    store = createTokenRepository(database.sql, repositoryOptions)
    reader = createAllocationReader(database.sql, repositoryOptions)
  })
  beforeEach(async () => {
    await database.sql`delete from pool_allocations`
    await database.sql`delete from dns_names`
  })

  const findState = async (wanted: PoolName) => (await reader.findStates([wanted]))[0]
  const reserve = () => store.reserve({ ...name, createdBy: 'wizard' }, caller)
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
  test('a name has at most its latest 120 previous record sets', async () => {
    const addresses: string[] = []
    const recordsOf = (loadBalancerIP: string) => {
      addresses.push(loadBalancerIP)
      return [{ name: 'acme.pool.test', type: 'A', ttl: 300, values: [loadBalancerIP] }] as const
    }
    // An odd number of versions for each holder: the order must not depend on it.
    for (let round = 1; round <= 70; round += 1) {
      const { reservationToken } = await reserved()
      await commit(reservationToken, recordsOf(`192.0.2.${round}`))
      const loadBalancerIP = `198.51.100.${round}`
      await store.update({ ...name, reservationToken, loadBalancerIP }, recordsOf(loadBalancerIP), caller)
      await store.release(name, caller)
      const [row] = await database.sql<
        { previous_records: { values: string[] }[] }[]
      >`select previous_records from dns_names`
      expect(row?.previous_records.flatMap(set => set.values)).toEqual(addresses.slice(-120))
    }
  })

  test('the release of a reservation does not change the desired records', async () => {
    await reserved()
    expect(await store.release(name, caller)).toMatchObject({ kind: 'released', version: null })
    expect(await database.sql`select from dns_names`).toHaveLength(0)
  })

  test('the sweeper deletes expired reservations, and no other, in batches', async () => {
    await database.sql`
      insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
      select 'pool.test', 'old' || n, 'reserved', now() - interval '2 h', now() - interval '1 h', sha256(gen_random_uuid()::text::bytea), ''
      from generate_series(1, 2500) n`
    await reserved()
    let deleted = 0
    const options = {
      deleteReservations: store.deleteExpired,
      deleteKeys: async () => 0,
      onDeleted: (count: number) => {
        deleted += count
      },
      now: () => 0,
      sleep: async () => {},
    }
    await sweepExpired(options, new AbortController().signal)
    expect(deleted).toBe(2_500)
    expect(await database.sql`select subdomain from pool_allocations`).toEqual([{ subdomain: 'acme' }])
    const [swept] = await database.sql`select count(*)::int as n from allocation_history where actor = 'sweeper'`
    expect(swept?.n).toBe(2_500)
  })

  test('the sweeper skips a locked row without waiting', async () => {
    await reserved()
    await database.advance(2 * TTL)
    await database.sql.begin(async tx => {
      await tx`select from pool_allocations for update`
      expect(await store.deleteExpired(10)).toBe(0)
    })
    expect(await store.deleteExpired(10)).toBe(1)
  })

  test('a version is never used twice, not even after the row of its name was deleted', async () => {
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

  test('a page of a list reads only its own rows, at any position in the pool', async () => {
    await database.sql`
      insert into pool_allocations (pool_domain, subdomain, state, reserved_at, token_hash, created_by,
        sovereign_fqdn, load_balancer_ip, committed_at)
      select 'pool.test', 'n' || n, 'active', now(), sha256(gen_random_uuid()::text::bytea), '', 'x.test', '192.0.2.1', now()
      from generate_series(1, 30000) n`
    await database.sql`
      insert into dns_names (zone, subdomain, version, applied_version, desired, changed_at, next_attempt_at)
      select pool_domain, subdomain, 1, 1, '[]', now(), now() from pool_allocations`
    await database.sql`vacuum analyze pool_allocations, dns_names`
    const one = createDatabaseClient(database.url, { maxConnections: 1, applicationName: 'page' })
    const readSoFar = async () => {
      await one`select pg_stat_force_next_flush()`
      const [row] = await one<{ read: number }[]>`
        select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int8 as read from pg_stat_user_tables
        where relname in ('pool_allocations', 'dns_names')`
      return row?.read ?? 0
    }
    const before = await readSoFar()
    const page = await createAllocationReader(one, repositoryOptions).list('pool.test', {
      after: 'n8',
      limit: 500,
    })
    const read = (await readSoFar()) - before
    await one.end()
    expect(page).toHaveLength(500)
    expect(read).toBeGreaterThanOrEqual(1_000)
    expect(read).toBeLessThan(1_100)
  })

  test('every lookup uses an index', async () => {
    await database.sql`
      insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
      select 'big.test', 'n' || n, 'reserved', now(), now() + interval '1 h', sha256(gen_random_uuid()::text::bytea), ''
      from generate_series(1, 50000) n`
    await database.sql`analyze pool_allocations`
    for (const statement of [
      "select state from pool_allocations a where a.pool_domain = 'big.test' and a.subdomain = 'n7'",
      "select * from pool_allocations a where a.pool_domain = 'big.test' and a.subdomain > 'n7' order by a.subdomain limit 1000",
      "select * from pool_allocations where state <> 'active' and lineage_id is null and greatest(expires_at, cool_off_until) <= now() order by greatest(expires_at, cool_off_until) limit 1000",
    ]) {
      const plan = await database.sql.unsafe(`explain ${statement}`)
      const text = plan.map(row => row['QUERY PLAN']).join('\n')
      expect(text).toContain('Index Scan')
      expect(text).not.toContain('Seq Scan')
      expect(text).not.toContain('Sort')
    }
  })

  describe('batches', () => {
    const createRequest = (
      subdomain: string,
      more: Partial<PoolName & { createdBy: string }> = {},
      who = 1,
    ): ReserveWithCaller => ({
      command: { ...name, subdomain, createdBy: `by-${who}`, ...more },
      caller: { actor: who % 2 === 0 ? 'operator' : 'in-cluster', address: `192.0.2.${who}`, requestId: `req-${who}` },
    })
    /** The history entries since the call: name, event and actor. */
    const historySince = async () => {
      const [last] = await database.sql<{ id: number }[]>`select coalesce(max(id), 0) as id from allocation_history`
      return async () =>
        (
          await database.sql`
            select pool_domain || ' ' || subdomain || ' ' || event || ' ' || from_state || ' ' || to_state || ' '
              || created_by || ' ' || actor || ' ' || address || ' ' || request_id as line
            from allocation_history where id > ${last?.id ?? 0} order by id`
        ).map(({ line }) => line)
    }

    test('results are in the order of the requests: free, reserved, active, expired, in several pools', async () => {
      await store.reserveMany([createRequest('expired', {}, 8), createRequest('gone', {}, 9)])
      await database.advance(TTL)
      await store.reserveMany([createRequest('taken', {}, 8)])
      const { reservationToken } = await reserved()
      await commit(reservationToken)
      const written = await historySince()
      const requests = [
        createRequest('zulu', {}, 1),
        createRequest('taken', {}, 2),
        createRequest('expired', {}, 3),
        createRequest('acme', {}, 5),
        createRequest('alpha', {}, 6),
        createRequest('alpha', { poolDomain: 'other.test' }, 7),
      ]
      const decisions = await store.reserveMany(requests)
      expect(
        decisions.map(decision =>
          decision.kind === 'granted'
            ? `${decision.allocation.subdomain}.${decision.allocation.poolDomain} ${decision.allocation.createdBy}`
            : decision.kind,
        ),
      ).toEqual([
        'zulu.pool.test by-1',
        'conflict',
        'expired.pool.test by-3',
        'conflict',
        'alpha.pool.test by-6',
        'alpha.other.test by-7',
      ])
      // In the order of the requests, not of the names, with each expiry before the reservation that replaces it.
      expect(await written()).toEqual([
        'pool.test zulu reserved none reserved by-1 in-cluster 192.0.2.1 req-1',
        'pool.test expired expired reserved none by-8 in-cluster 192.0.2.3 req-3',
        'pool.test expired reserved none reserved by-3 in-cluster 192.0.2.3 req-3',
        'pool.test alpha reserved none reserved by-6 operator 192.0.2.6 req-6',
        'other.test alpha reserved none reserved by-7 in-cluster 192.0.2.7 req-7',
      ])
      const tokens = await database.sql`
        select encode(token_hash, 'hex') as digest from pool_allocations where created_by in ('by-1', 'by-3', 'by-6', 'by-7')`
      expect(
        new Set(decisions.flatMap(one => (one.kind === 'granted' ? [tokenDigest(one.reservationToken)] : []))),
      ).toEqual(new Set(tokens.map(({ digest }) => digest)))
      const free = [
        { ...name, subdomain: 'gone' },
        { poolDomain: 'other.test', subdomain: 'zulu' },
      ]
      const held = await reader.findStates([...requests.map(({ command }) => command), ...free])
      expect(held).toEqual([...Array(3).fill('reserved'), 'active', ...Array(2).fill('reserved'), null, null])
    })

    test('a request for a name in its cool-off learns when it becomes free', async () => {
      await database.sql`
        insert into pool_allocations (pool_domain, subdomain, state, reserved_at, cool_off_until, token_hash, created_by)
        values ('pool.test', 'cooling', 'released', now(), date_trunc('day', now()) + interval '2 d', sha256(''), 'x')`
      const written = await historySince()
      const decisions = await store.reserveMany(
        ['cooling', 'free', 'free-2'].map((subdomain, i) => createRequest(subdomain, {}, i)),
      )
      const availableAt = expect.stringMatching(/T00:00:00\.000Z$/)
      const coolingOff = { kind: 'cooling-off', availableAt }
      expect(decisions).toMatchObject([coolingOff, { kind: 'granted' }, { kind: 'granted' }])
      expect(await written()).toEqual([
        'pool.test free reserved none reserved by-1 in-cluster 192.0.2.1 req-1',
        'pool.test free-2 reserved none reserved by-2 operator 192.0.2.2 req-2',
      ])
    })

    test.each([
      ['no row', null, 'granted'],
      ['a reservation', { state: 'reserved', expires_at: '2100-01-01' }, 'conflict'],
      ['an expired reservation', { state: 'reserved', expires_at: '2020-01-02', renewal_count: 2 }, 'granted'],
      [
        'an expired reservation in a cool-off',
        { state: 'reserved', expires_at: '2020-01-02', cool_off_until: '2100-01-01' },
        'cooling-off',
      ],
      [
        'an active allocation',
        { state: 'active', sovereign_fqdn: 'x', load_balancer_ip: '192.0.2.1', committed_at: '2020-01-02' },
        'conflict',
      ],
      ['a cool-off', { state: 'released', cool_off_until: '2100-01-01' }, 'cooling-off'],
      ['a cool-off that has ended', { state: 'released', cool_off_until: '2020-01-02' }, 'granted'],
      ['a lineage', { state: 'released', lineage_id: foreign }, 'conflict'],
    ])('a name with %s: alone, a request gets and writes what it does in a batch', async (_, row, kind) => {
      const names = ['alone', 'beside']
      for (const subdomain of row ? names : []) {
        const columns = {
          ...name,
          reserved_at: '2020-01-01',
          token_hash: Buffer.alloc(32),
          created_by: 'former',
          ...row,
        }
        const { poolDomain, ...others } = columns
        await database.sql`insert into pool_allocations ${database.sql({ pool_domain: poolDomain, ...others, subdomain })}`
      }
      const written = await historySince()
      const [alone] = await store.reserveMany([createRequest('alone')])
      const [beside] = await store.reserveMany([createRequest('beside'), createRequest('other', {}, 2)])
      expect([alone?.kind, beside?.kind]).toEqual([kind, kind])
      const lines = (await written()).filter(line => !line.startsWith('pool.test other'))
      const linesOf = (subdomain: string) => lines.filter(line => line.split(' ')[1] === subdomain)
      expect(linesOf('alone')).toEqual(linesOf('beside').map(line => line.replace('beside', 'alone')))
      expect(linesOf('alone').length).toBe(kind !== 'granted' ? 0 : row?.state === 'reserved' ? 2 : 1)
      const rows = await database.sql`
        select to_jsonb(a) - array['subdomain', 'token_hash', 'reserved_at', 'expires_at'] as row, expires_at - reserved_at as ttl
        from pool_allocations a where subdomain in ${database.sql(names)} order by subdomain`
      expect(rows).toHaveLength(2)
      expect(rows[0]).toEqual(rows[1])
    })

    test('of concurrent requests for a name, or under a key, the first one is executed first', async () => {
      const claim = createClaim('turns', [])
      const request = (subdomain: string, more: object = {}) =>
        store.reserveHashed({ ...name, subdomain, createdBy: '', caller, tokenHash: randomBytes(32), ...more })
      const decisions = await Promise.all([
        request('turn'),
        request('turn'),
        request('turn-2', { claim }),
        request('turn-3', { claim }),
        request('turn-3'),
        request('turn'),
      ])
      expect(decisions.map(({ kind }) => kind).join(' ')).toBe(
        'granted conflict granted duplicate-request granted conflict',
      )
    })

    test('a batch of 100, and an empty batch', async () => {
      const requests = Array.from({ length: 100 }, (_, i) => createRequest(`n${(i * 37) % 100}`, {}, i))
      const decisions = await store.reserveMany(requests)
      expect(decisions.map(decision => decision.kind === 'granted' && decision.allocation.createdBy)).toEqual(
        requests.map(({ command }) => command.createdBy),
      )
      expect(await store.reserveMany(requests)).toEqual(Array(100).fill({ kind: 'conflict' }))
      const mixed = requests.flatMap(({ command }) => [{ ...command, subdomain: `no-${command.subdomain}` }, command])
      expect(await reader.findStates(mixed)).toEqual(Array(100).fill([null, 'reserved']).flat())
      expect(await store.reserveMany([])).toEqual([])
      expect(await reader.findStates([])).toEqual([])
    })

    test('createdBy is stored and returned unchanged', async () => {
      const texts = [
        '',
        'null',
        `"quoted" 'too'`,
        'back\\slash \\u0041 \\n',
        '{"a":[1]}',
        "'); drop table pool_allocations; --",
        '\u{1f680} \u{1f469}\u200d\u{1f680}',
        'tab\tand line\nand \u2028',
        '\u{10ffff}e\u0301',
        '\u{1f680}'.repeat(253),
        'x'.repeat(253),
      ]
      const written = await historySince()
      const decisions = await store.reserveMany(
        texts.map((createdBy, i) => createRequest(`text-${i}`, { createdBy }, 3)),
      )
      expect(decisions.map(one => one.kind === 'granted' && one.allocation.createdBy)).toEqual(texts)
      expect(await written()).toEqual(
        texts.map((text, i) => `pool.test text-${i} reserved none reserved ${text} in-cluster 192.0.2.3 req-3`),
      )
      const stored = await database.sql`
        select created_by as text from pool_allocations order by substr(subdomain, 6)::int`
      expect(stored.map(row => row.text)).toEqual(texts)
    })

    test('an invalid request leaves no effect of its batch', async () => {
      const written = await historySince()
      const faulty = store.reserveMany([createRequest('good'), createRequest('bad', { createdBy: 'a\0b' })])
      await expect(faulty).rejects.toMatchObject({ code: '22P05' })
      expect(await database.sql`select from pool_allocations`).toHaveLength(0)
      expect(await written()).toEqual([])
    })

    test('a duplicate key reserves nothing, and the first result stays stored', async () => {
      const claim = createClaim('store-turn', [])
      const reserveUnder = (subdomain: string) =>
        store.reserveHashed({ ...name, subdomain, createdBy: '', caller, tokenHash: randomBytes(32), claim })
      const readStored = () =>
        database.sql`select * from idempotency_keys where key_hash = decode(${claim.keyHash}, 'hex')`
      expect((await reserveUnder('first')).kind).toBe('granted')
      const stored = await readStored()
      expect(stored).toMatchObject([{ revision: 1 }])
      const written = await historySince()
      expect(await reserveUnder('second')).toEqual({ kind: 'duplicate-request' })
      expect(await findState({ ...name, subdomain: 'second' })).toBeNull()
      expect(await written()).toEqual([])
      expect(await readStored()).toEqual(stored)
    })

    test('a key under which another request stores an outcome meanwhile reserves nothing; the others of its batch are served', async () => {
      const claim = createClaim('meanwhile', [])
      const held = await holdLock(
        database.sql,
        tx => tx`
          insert into idempotency_keys (key_hash, fingerprint, expires_at, result)
          values (decode(${claim.keyHash}, 'hex'), sha256('x'), now() + interval '1 hour', '{}')`,
      )
      const requests = ['beside', 'late', 'behind'].map(subdomain => ({
        ...{ ...name, subdomain, createdBy: '', caller, tokenHash: randomBytes(32) },
        ...(subdomain === 'late' ? { claim } : {}),
      }))
      const decisions = Promise.all(requests.map(store.reserveHashed))
      await untilSessionsWait(database.sql, 1, '%insert into pool_allocations%')
      await held.commit()
      expect((await decisions).map(({ kind }) => kind)).toEqual(['granted', 'duplicate-request', 'granted'])
      expect(await findState({ ...name, subdomain: 'late' })).toBeNull()
    })

    test.each([
      ['alone', []],
      ['in a batch', ['other']],
    ])('a reservation that was inserted and expired while the statement waited is replaced: %s', async (_, others) => {
      const held = await holdLock(
        database.sql,
        tx => tx`
          insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
          values ('pool.test', 'acme', 'reserved', now() - interval '2 s', now() - interval '1 s', sha256(gen_random_uuid()::text::bytea), 'x')`,
      )
      const written = await historySince()
      const waiting = store.reserveMany(['acme', ...others].map(subdomain => createRequest(subdomain, {}, 2)))
      await untilSessionsWait(database.sql, 1, '%insert into pool_allocations%')
      await held.commit()
      expect((await waiting)[0]?.kind).toBe('granted')
      expect((await written()).filter(line => line.startsWith('pool.test acme'))).toEqual([
        `pool.test acme expired reserved none x operator 192.0.2.2 req-2`,
        'pool.test acme reserved none reserved by-2 operator 192.0.2.2 req-2',
      ])
    })

    test('findStates does not wait for locks', async () => {
      await reserved()
      const held = await lockRow(database.sql, name)
      expect(await reader.findStates([name])).toEqual(['reserved'])
      await held.release()
    })

    test.each(['auto', 'force_generic_plan'])(
      'prepared (%s) on an empty table, the statements read only the named rows after it has grown without analyze',
      async mode => {
        await database.sql`truncate pool_allocations`
        await database.sql`alter table pool_allocations set (autovacuum_enabled = false)`
        const one = createDatabaseClient(database.url, { maxConnections: 1, applicationName: 'grown' })
        await one.unsafe(`set plan_cache_mode = ${mode}`)
        const options = { ...repositoryOptions, timeoutMs: 20_000 }
        const grown = createTokenRepository(one, options)
        const names = Array.from({ length: 100 }, (_, i) => ({ poolDomain: 'big.test', subdomain: `n${100 * i + 1}` }))
        const both = async () => {
          await grown.reserveMany(names.map(name => ({ command: { ...name, createdBy: '' }, caller })))
          return createAllocationReader(one, options).findStates(names)
        }
        // From the sixth execution on, Postgres may use a generic plan (Postgres manual, PREPARE).
        for (let time = 0; time < 6; time += 1) await both()
        await database.sql`
          insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
          select 'big.test', 'n' || n, 'reserved', now() - interval '2 h', now() - interval '1 h', sha256(gen_random_uuid()::text::bytea), ''
          from generate_series(1, 10000) n on conflict do nothing`
        await database.advance(TTL)
        const rowsScanned = async () => {
          await one`select pg_stat_force_next_flush()`
          const [row] = await one<{ rows: number }[]>`
            select seq_tup_read as rows from pg_stat_user_tables where relname = 'pool_allocations'`
          return row?.rows ?? Number.NaN
        }
        const before = await rowsScanned()
        expect(await both()).toEqual(Array(100).fill('reserved'))
        expect((await rowsScanned()) - before).toBe(0)
        await one.end()
        await database.sql`alter table pool_allocations reset (autovacuum_enabled)`
      },
    )
  })
})

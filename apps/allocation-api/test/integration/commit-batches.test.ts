import { randomUUID } from 'node:crypto'
import { createDatabaseClient } from '@pool/runtime/database/client'
import { createServerClock } from '@pool/runtime/database/time'
import { createWriter } from '@pool/runtime/database/writer'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createAllocationRepository } from '../../src/allocation/repository.ts'
import { hashToken } from '../../src/lib/token.ts'
import type { Caller } from '../../src/naming/naming.ts'
import { createTestDatabase, repositoryOptions, useTestDatabase } from '../support/database.ts'
import { holdLock, lockRow, untilSessionsWait } from '../support/locks.ts'
import { type CommitWithToken, createTokenRepository, type TokenRepository } from '../support/token-repository.ts'

const TTL = repositoryOptions.reservation.ttlMs
const poolDomain = 'pool.test'
const caller: Caller = { actor: 'in-cluster', address: null, requestId: 'set-up' }
const WRONG = '00000000-0000-4000-8000-000000000000'

describe('a batch of commits', async () => {
  const database = await useTestDatabase()
  let store: TokenRepository
  beforeAll(async () => {
    store = createTokenRepository(database.sql, repositoryOptions)
  })
  beforeEach(() => database.sql`delete from pool_allocations`)

  const reserve = async (subdomain: string): Promise<string> => {
    const decision = await store.reserve({ poolDomain, subdomain, createdBy: `owner of ${subdomain}` }, caller)
    if (decision.kind !== 'granted') throw new Error(decision.kind)
    return decision.reservationToken
  }

  /** The n-th request of a batch: each has an address, records and a caller of its own. */
  const toRequest = (subdomain: string, reservationToken: string, n: number): CommitWithToken => {
    const fqdn = `${subdomain}.${poolDomain}`
    const address = `192.0.2.${n}`
    return {
      command: { poolDomain, subdomain, reservationToken, sovereignFQDN: fqdn, loadBalancerIP: address },
      records: [{ name: fqdn, type: 'A', ttl: 300, values: [address] }],
      caller: { actor: n % 2 === 0 ? 'operator' : 'in-cluster', address: `198.51.100.${n}`, requestId: `req-${n}` },
    }
  }
  const commitOne = ({ command, records, caller: by }: CommitWithToken) => store.commit(command, records, by)

  /** Brings a name into a state. Returns the token of the right client. */
  const states: Record<string, (subdomain: string) => Promise<string>> = {
    free: async () => WRONG,
    reserved: reserve,
    expired: async subdomain => {
      const token = await reserve(subdomain)
      await database.sql`
        update pool_allocations set reserved_at = now() - interval '2 s', expires_at = now() - interval '1 s'
        where subdomain = ${subdomain}`
      return token
    },
    active: async subdomain => {
      const token = await reserve(subdomain)
      await commitOne(toRequest(subdomain, token, 200))
      return token
    },
    released: async subdomain => {
      const token = await reserve(subdomain)
      await commitOne(toRequest(subdomain, token, 200))
      await database.sql`
        update pool_allocations set state = 'released', cool_off_until = now() + interval '1 hour' where subdomain = ${subdomain}`
      return token
    },
    'held before': async subdomain => {
      const token = await reserve(subdomain)
      await commitOne(toRequest(subdomain, token, 200))
      await store.release({ poolDomain, subdomain }, caller)
      return reserve(subdomain)
    },
  }

  /** Requests as `name` with the right token, or `name!` with another one. */
  const cases: readonly [title: string, names: Record<string, string>, requests: string, outcomes: string][] = [
    ['one name', { a: 'reserved' }, 'a', 'committed'],
    ['names in any order', { a: 'reserved', b: 'reserved', c: 'reserved' }, 'c a b', 'committed committed committed'],
    ['a free name', { a: 'free', b: 'reserved' }, 'a b', 'not-found committed'],
    ['a released name', { a: 'released', b: 'reserved' }, 'b a', 'committed not-found'],
    [
      'an expired reservation',
      { a: 'expired', b: 'reserved' },
      'a a! b',
      'reservation-expired reservation-expired committed',
    ],
    ['an active name', { a: 'active', b: 'reserved' }, 'a b a!', 'already-active committed already-active'],
    ['a wrong token', { a: 'reserved', b: 'reserved' }, 'a! b', 'token-mismatch committed'],
    ['one name twice', { a: 'reserved' }, 'a a', 'committed already-active'],
    ['one name after a wrong token', { a: 'reserved' }, 'a! a', 'token-mismatch committed'],
    ['one name before a wrong token', { a: 'reserved' }, 'a a!', 'committed already-active'],
    [
      'one name between other requests',
      { a: 'reserved', b: 'held before', c: 'free' },
      'b! c a! b a a! b! a b',
      'token-mismatch not-found token-mismatch committed committed already-active already-active already-active already-active',
    ],
    ['names with an earlier holder', { a: 'held before', b: 'held before' }, 'b a', 'committed committed'],
  ]

  /** Everything that commits write, in an order of its own and without what differs from one execution to the next. */
  const dump = async (prefix: string) => {
    const inPrefix = (column: string) => database.sql`left(${database.sql(column)}, ${prefix.length}) = ${prefix}`
    const short = (column: string) => database.sql`substr(${database.sql(column)}, ${prefix.length + 1}) as name`
    return {
      allocations: await database.sql`
        select ${short('subdomain')}, state, host(load_balancer_ip) as address, right(sovereign_fqdn, 10) as pool, expires_at is null as permanent,
          committed_at >= reserved_at as in_order, renewal_count, cool_off_until is null as free
        from pool_allocations where ${inPrefix('subdomain')} order by subdomain`,
      records: await database.sql`
        select ${short('subdomain')}, desired -> 0 -> 'values' as desired, purge_version > 0 as is_purged, applied_version
        from dns_names where ${inPrefix('subdomain')} order by subdomain`,
      history: await database.sql`
        select ${short('subdomain')}, event, from_state, to_state, right(created_by, 1) as owner, actor, address, request_id,
          renewal_count
        from allocation_history where ${inPrefix('subdomain')} order by subdomain, id`,
    }
  }

  test.each(cases)(
    '%s: each request gets what it would get after those before it',
    async (_, names, requests, outcomes) => {
      const prepare = async () => {
        const prefix = `x${randomUUID().slice(0, 13)}-`
        const tokens: Record<string, string> = {}
        for (const [name, state] of Object.entries(names)) tokens[name] = (await states[state]?.(prefix + name)) ?? ''
        const list = requests.split(' ').map((text, i) => {
          const name = text.replace('!', '')
          return toRequest(prefix + name, text.endsWith('!') ? WRONG : (tokens[name] ?? ''), i + 1)
        })
        return { prefix, list }
      }
      const batch = await prepare()
      const decisions = await Promise.all(batch.list.map(commitOne))
      expect(decisions.map(({ kind }) => kind).join(' ')).toBe(outcomes)
      for (const [i, decision] of decisions.entries()) {
        if (decision.kind !== 'committed') continue
        const { subdomain, loadBalancerIP, sovereignFQDN } = batch.list[i]?.command ?? {}
        const [row] = await database.sql`select version from dns_names where subdomain = ${subdomain ?? ''}`
        expect(decision).toMatchObject({
          allocation: { subdomain, loadBalancerIP, sovereignFQDN },
          version: row?.version,
        })
      }
      const alone = await prepare()
      const oneByOne = []
      for (const request of alone.list) oneByOne.push((await commitOne(request)).kind)
      expect(oneByOne.join(' ')).toBe(outcomes)
      expect(await dump(batch.prefix)).toEqual(await dump(alone.prefix))
    },
  )

  test('the history has the renewals of each reservation, and the entries are in the order of the requests', async () => {
    const tokens = { z: await reserve('z'), y: await reserve('y') }
    for (let i = 0; i < 3; i += 1) await store.renew({ poolDomain, subdomain: 'z', reservationToken: tokens.z })
    await store.commitMany([toRequest('z', tokens.z, 1), toRequest('y', tokens.y, 2)])
    const entries = await database.sql`
      select subdomain, renewal_count as renewals, renewed_until is not null as until from allocation_history
      where event = 'committed' and subdomain in ('y', 'z') order by id`
    expect(entries).toEqual([
      { subdomain: 'z', renewals: 3, until: true },
      { subdomain: 'y', renewals: null, until: false },
    ])
  })

  test('a hundred requests, and none', async () => {
    const names = Array.from({ length: 100 }, (_, i) => `n${(i * 37) % 100}`)
    const requests = await Promise.all(names.map(async (name, i) => toRequest(name, await reserve(name), i + 1)))
    const decisions = await store.commitMany(requests)
    expect(decisions.map(one => one.kind === 'committed' && one.allocation.loadBalancerIP)).toEqual(
      requests.map(({ command }) => command.loadBalancerIP),
    )
    const versions = decisions.map(one => (one.kind === 'committed' ? one.version : 0))
    expect(new Set(versions).size).toBe(100)
    expect(await store.commitMany([])).toEqual([])
  })

  test.each(['pool_allocations', 'dns_names'])('locks the rows of %s in name order', async table => {
    const names = ['order-1', 'order-2', 'order-3']
    const tokens = await Promise.all(names.map(name => states['held before']?.(name)))
    const requests = names.map((name, i) => toRequest(name, tokens[i] ?? '', i + 1)).toReversed()
    const rows = database.sql(table)
    const held = await holdLock(database.sql, tx => tx`select from ${rows} where subdomain = 'order-2' for update`)
    const decisions = store.commitMany(requests)
    await untilSessionsWait(database.sql, 1)
    const free = await database.sql`
      select subdomain from ${rows} where subdomain in ${database.sql(names)} order by subdomain for update skip locked`
    expect(free).toEqual([{ subdomain: 'order-3' }])
    await held.release()
    expect((await decisions).map(({ kind }) => kind)).toEqual(Array(3).fill('committed'))
  })

  test('a locked row undoes the batch after 50 ms; alone, its request waits and the others do not', async () => {
    const client = createDatabaseClient(database.url, { maxConnections: 4, applicationName: 'lanes' })
    const timeoutMs = 10_000
    const clock = createServerClock(database.sql, { timeoutMs })
    const repository = createAllocationRepository(
      createWriter({ fast: client, slow: database.sql, clock, timeoutMs }),
      repositoryOptions,
    )
    const names = ['lane-1', 'lane-2']
    const requests = await Promise.all(
      names.map(async (name, i) => {
        const { command, ...rest } = toRequest(name, '', i + 1)
        const { reservationToken: _, loadBalancerIP = '', ...fields } = command
        return { ...fields, ...rest, target: { loadBalancerIP }, tokenHash: hashToken(await reserve(name)) }
      }),
    )
    const held = await lockRow(database.sql, { poolDomain, subdomain: 'lane-2' })
    const startedAt = performance.now()
    const [free, locked] = requests.map(repository.commit)
    expect(await free).toMatchObject({ kind: 'committed' })
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(49)
    // Those of another kind do not wait for the locked one either.
    expect(await repository.release({ poolDomain, subdomain: 'lane-1', caller })).toMatchObject({ kind: 'released' })
    expect(await database.sql`select from pool_allocations where state = 'active'`).toHaveLength(0)
    await held.release()
    expect(await locked).toMatchObject({ kind: 'committed' })
    await client.end()
  })

  test.each(['auto', 'force_generic_plan'])(
    'prepared (%s) on empty tables, the statement reads only the rows of its names after they have grown without analyze',
    async mode => {
      const tables = ['pool_allocations', 'dns_names', 'allocation_history', 'former_names']
      const empty = await createTestDatabase()
      for (const table of tables) await empty.sql`alter table ${empty.sql(table)} set (autovacuum_enabled = false)`
      const one = createDatabaseClient(empty.url, { maxConnections: 1, applicationName: 'grown' })
      await one.unsafe(`set plan_cache_mode = ${mode}`)
      const grown = createTokenRepository(one, { ...repositoryOptions, timeoutMs: 20_000 })
      const commitAll = async (prefix: string) => {
        const names = Array.from({ length: 100 }, (_, i) => `${prefix}${i}`)
        const tokens = await grown.reserveMany(
          names.map(subdomain => ({ command: { poolDomain, subdomain, createdBy: '' }, caller })),
        )
        const requests = names.map((name, i) => {
          const token = tokens[i]
          return toRequest(name, token?.kind === 'granted' ? token.reservationToken : '', i + 1)
        })
        return grown.commitMany(requests)
      }
      // From the sixth execution on, Postgres may use a generic plan (Postgres manual, PREPARE).
      for (let time = 0; time < 6; time += 1) await commitAll(`before-${time}-`)
      await empty.sql`
        insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
        select 'pool.test', 'n' || n, 'reserved', now(), now() + interval '2 h', sha256(gen_random_uuid()::text::bytea), ''
        from generate_series(1, 10000) n`
      await empty.sql`
        insert into dns_names (zone, subdomain, version, desired, changed_at, next_attempt_at)
        select pool_domain, subdomain, 1, '[]', now(), now() from pool_allocations where state = 'reserved'`
      await empty.sql`
        insert into allocation_history (pool_domain, subdomain, event, from_state, to_state, actor, created_by)
        select pool_domain, subdomain, 'released', 'active', 'none', 'operator', '' from pool_allocations where state = 'reserved'`
      const rowsScanned = async () => {
        await one`select pg_stat_force_next_flush()`
        const [row] = await one<{ rows: number }[]>`
          select sum(seq_tup_read)::int8 as rows from pg_stat_user_tables where relname in ${one(tables)}`
        return row?.rows ?? Number.NaN
      }
      const before = await rowsScanned()
      expect((await commitAll('after-')).map(({ kind }) => kind)).toEqual(Array(100).fill('committed'))
      expect((await rowsScanned()) - before).toBe(0)
      await one.end()
      await empty.drop()
    },
  )

  test('an expired reservation that is still locked by its renewal is committed when the renewal ends', async () => {
    const token = await reserve('renewed')
    await database.sql`
      update pool_allocations set expires_at = now() - interval '1 s', reserved_at = now() - interval '2 s' where subdomain = 'renewed'`
    const held = await holdLock(
      database.sql,
      tx => tx`
        update pool_allocations set expires_at = now() + ${TTL}::float8 * interval '1 millisecond' where subdomain = 'renewed'`,
    )
    const decisions = Promise.all([1, 2].map(n => commitOne(toRequest('renewed', token, n))))
    await untilSessionsWait(database.sql, 1)
    await held.commit()
    expect((await decisions).map(({ kind }) => kind)).toEqual(['committed', 'already-active'])
  })
})

import { until } from '@pool/test-kit/poll.ts'
import { proofSize } from '@pool/test-kit/proof-size.ts'
import {
  type Api,
  type ApiResponse,
  type Replicas,
  smallPoolEnv,
  startApi,
  startReplicas,
} from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { activeNames, expectConsistentTables, expectDnsToMatch, untilApplied } from '../support/consistency.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { holdLock, lockRow, untilSessionsWait } from '../support/locks.ts'
import { commit, countStatuses, pool, release, renew, reserve, reserveToken } from '../support/operations.ts'
import { tokenDigest } from '../support/token-repository.ts'

/** To start a process takes more CPU time than its part of the race. */
const PROCESSES = Math.min(8, proofSize(8, 3))
const SWEEPERS = proofSize(8, 2)
const STARTING_PROCESSES = proofSize(10, 3)
/** Of all processes of the race: more than MIN_WAITING. */
const CONNECTIONS = 40
const CALLERS = Math.min(200, proofSize(200, 80))
const TTL_MS = 600_000
/**
 * A race can pass by luck: with a decision that reads before it writes, one in three rounds failed. So there are several
 * rounds, and in every second one a table lock blocks all writers until at least this many statements wait for it.
 */
const ROUNDS = proofSize(20, 2)
/** A process executes one write of a name at a time, apart from its batches. */
const MIN_WAITING = PROCESSES
const DUELS = proofSize(150, 15)
/** Of duels, in case one order does not occur in those above. */
const MAX_DUELS = 20 * DUELS
const WRONG_TOKEN = '00000000-0000-4000-8000-000000000000'
/** On a busy machine, no statement and no wait for records ends with a response that the races do not expect. */
const patientEnv = { PDM_DATABASE_TIMEOUT: '1m', PDM_DNS_COMMIT_WAIT: '1m' }

describe(`${PROCESSES} processes on one database`, () => {
  let database: TestDatabase
  let fleet: Replicas<Api>

  beforeAll(async () => {
    database = await createTestDatabase()
    fleet = await startReplicas(PROCESSES, () =>
      startApi(database.url, {
        ...patientEnv,
        PDM_DATABASE_POOL_SIZE: String(Math.ceil(CONNECTIONS / PROCESSES)),
      }),
    )
  })
  afterAll(async () => {
    await fleet?.kill()
    await database?.drop()
  })

  const listEvents = async (subdomain: string): Promise<string[]> => {
    const rows = await database.sql<{ event: string }[]>`
      select event from allocation_history
      where subdomain = ${subdomain} and actor <> 'convergence' order by id`
    return rows.map(row => row.event)
  }
  const findRow = async (subdomain: string) => {
    const [row] = await database.sql<{ state: string; digest: string; live: boolean }[]>`
      select state, encode(token_hash, 'hex') as digest, state = 'active' or expires_at > now() as live
      from pool_allocations where subdomain = ${subdomain}`
    return row
  }

  /** `count` concurrent calls, spread over the processes. With `gated`, a table lock releases their statements at the same time. */
  const callConcurrently = async (
    count: number,
    gated: boolean,
    call: (api: Api, i: number) => Promise<ApiResponse>,
  ) => {
    const gate = gated && (await holdLock(database.sql, tx => tx`lock table pool_allocations in share mode`))
    const responses = Array.from({ length: count }, (_, i) => call(fleet.next(), i))
    if (gate) {
      await untilSessionsWait(database.sql, Math.min(count, MIN_WAITING)).finally(() => gate.release())
    }
    return Promise.all(responses)
  }

  /** Requests with a key and without one share the statements of their process. */
  const keyHeader = (name: string, i: number) => (i % 3 === 0 ? { 'Idempotency-Key': `${name}-${i}` } : undefined)

  test.each(Array.from({ length: ROUNDS }, (_, i) => i))(
    `of ${CALLERS} concurrent reserves of one name, exactly one succeeds (round %i)`,
    async round => {
      const name = `reserve-${round}`
      const responses = await callConcurrently(CALLERS, round % 2 === 1, (api, i) =>
        reserve(api, name, keyHeader(name, i)),
      )
      expect(countStatuses(responses)).toEqual({ 201: 1, 409: CALLERS - 1 })
      const winner = responses.find(response => response.status === 201)
      expect(await findRow(name)).toMatchObject({
        state: 'reserved',
        digest: tokenDigest(winner?.body.reservationToken),
      })
      expect(await listEvents(name)).toEqual(['reserved'])
    },
  )

  test.each(Array.from({ length: ROUNDS }, (_, i) => i))(
    `of ${CALLERS} concurrent reserves of an expired name, exactly one succeeds and the history has one expiry (round %i)`,
    async round => {
      const name = `expired-${round}`
      const old = await reserveToken(fleet.next(), name)
      await database.advance(TTL_MS)
      const responses = await callConcurrently(CALLERS, round % 2 === 1, (api, i) =>
        reserve(api, name, keyHeader(name, i)),
      )
      expect(countStatuses(responses)).toEqual({ 201: 1, 409: CALLERS - 1 })
      const winner = responses.find(response => response.status === 201)
      expect(winner?.body.reservationToken).not.toBe(old)
      expect(await findRow(name)).toMatchObject({ digest: tokenDigest(winner?.body.reservationToken), live: true })
      expect(await listEvents(name)).toEqual(['reserved', 'expired', 'reserved'])
    },
  )

  test('batches of the same fifty names in opposite orders do not deadlock, and each name has one owner', async () => {
    const names = Array.from({ length: 50 }, (_, i) => `crosswise-${i}`)
    // Every second name is expired: an update waits for a row in another way than an insert.
    for (const name of names.filter((_, i) => i % 2 === 0)) await reserve(fleet.next(), name)
    await database.advance(TTL_MS)
    const gate = await holdLock(database.sql, tx => tx`lock table pool_allocations in share mode`)
    const batches = Array.from({ length: PROCESSES }, (_, process) => {
      const api = fleet.next()
      // The requests of a process are sent in this order, so its batches have it too.
      return (process % 2 === 0 ? names : names.toReversed()).map(name => ({ name, response: reserve(api, name) }))
    }).flat()
    await untilSessionsWait(database.sql, PROCESSES).finally(() => gate.release())
    const responses = await Promise.all(
      batches.map(async ({ name, response }) => ({ name, status: (await response).status })),
    )
    for (const [i, name] of names.entries()) {
      const statuses = responses.filter(response => response.name === name).map(({ status }) => status)
      expect(statuses.toSorted()).toEqual([201, ...Array(PROCESSES - 1).fill(409)])
      expect(await listEvents(name)).toEqual(i % 2 === 0 ? ['reserved', 'expired', 'reserved'] : ['reserved'])
    }
  })

  test.each(Array.from({ length: ROUNDS }, (_, i) => i))(
    'batches of commits of the same fifty names in opposite orders: each name has one winner, and no deadlock (round %i)',
    async round => {
      const names = Array.from({ length: 50 }, (_, i) => `batch-${round}-${i}`)
      const tokens = new Map<string, string>()
      const reserveAll = (some: readonly string[]) =>
        Promise.all(some.map(async name => tokens.set(name, await reserveToken(fleet.next(), name))))
      await reserveAll(names)
      // Every second name had records: an update waits for a row of dns_names in another way than an insert.
      const heldBefore = names.filter((_, i) => i % 2 === 0)
      await Promise.all(heldBefore.map(name => commit(fleet.next(), name, tokens.get(name) ?? '')))
      await Promise.all(heldBefore.map(name => release(fleet.next(), name)))
      await reserveAll(heldBefore)
      const gate =
        round % 2 === 1 && (await holdLock(database.sql, tx => tx`lock table pool_allocations in share mode`))
      const sent = Array.from({ length: PROCESSES }, (_, process) => {
        const api = fleet.next()
        // The requests of a process are sent in this order, so its batches have it too.
        const order = process % 2 === 0 ? names : names.toReversed()
        return order.flatMap((name, i) => [
          ...(i % 5 === 0 ? [{ name, isOwn: false, response: commit(api, name, WRONG_TOKEN) }] : []),
          { name, isOwn: true, response: commit(api, name, tokens.get(name) ?? '', `192.0.2.${process + 1}`) },
          // Reserves lock the same rows.
          { name, isOwn: false, response: reserve(api, name) },
        ])
      }).flat()
      if (gate) await untilSessionsWait(database.sql, PROCESSES).finally(() => gate.release())
      const responses = await Promise.all(sent.map(async one => ({ ...one, ...(await one.response) })))
      expect(responses.filter(({ isOwn, status }) => !isOwn && ![403, 409].includes(status))).toEqual([])
      for (const name of names) {
        const own = responses.filter(one => one.isOwn && one.name === name)
        expect(own.map(({ status }) => status).toSorted()).toEqual([200, ...Array(PROCESSES - 1).fill(409)])
        const winner = own.find(({ status }) => status === 200)
        const [row] = await database.sql`
          select host(load_balancer_ip) as address, desired -> 0 -> 'values' ->> 0 as desired
          from pool_allocations join dns_names on zone = pool_domain and dns_names.subdomain = pool_allocations.subdomain
          where pool_allocations.subdomain = ${name}`
        const address = winner?.body.loadBalancerIP
        expect(row).toEqual({ address, desired: address })
        const once = ['reserved', 'committed']
        expect(await listEvents(name)).toEqual(heldBefore.includes(name) ? [...once, 'released', ...once] : once)
      }
      const [found] = await database.sql<{ deadlocks: number }[]>`
        select deadlocks::int from pg_stat_database where datname = current_database()`
      expect(found?.deadlocks).toBe(0)
    },
  )

  test('a locked row delays requests for its name, and no other request', async () => {
    const api = fleet.next()
    await reserveToken(api, 'hot')
    const held = await lockRow(database.sql, { poolDomain: pool, subdomain: 'hot' })
    // They share a statement if they arrive in one turn of the event loop.
    let answered = 0
    const hot = Array.from({ length: 2 }, () =>
      reserve(api, 'hot').finally(() => {
        answered += 1
      }),
    )
    await untilSessionsWait(database.sql, 1, '%insert into pool_allocations%')
    const beside = await Promise.all(Array.from({ length: 50 }, (_, i) => reserve(api, `beside-${i}`)))
    expect(countStatuses(beside)).toEqual({ 201: 50 })
    expect(answered).toBe(0)
    await held.release()
    expect(countStatuses(await Promise.all(hot))).toEqual({ 409: 2 })
  })

  test.each(Array.from({ length: ROUNDS }, (_, i) => i))(
    `of ${CALLERS} concurrent commits with one token, one returns 200 and all others 409 (round %i)`,
    async round => {
      const name = `commit-${round}`
      const token = await reserveToken(fleet.next(), name)
      const responses = await callConcurrently(CALLERS, round % 2 === 1, (api, i) =>
        commit(api, name, token, `192.0.2.${i + 1}`),
      )
      expect(countStatuses(responses)).toEqual({ 200: 1, 409: CALLERS - 1 })
      const winner = responses.find(response => response.status === 200)
      const [row] = (await activeNames(database.sql)).filter(active => active.subdomain === name)
      expect(row?.address).toBe(winner?.body.loadBalancerIP)
      expect(await listEvents(name)).toEqual(['reserved', 'committed'])
    },
  )

  test(`release against commit, ${DUELS} names: the outcome is one of the two orders, and only active names have records`, async () => {
    const names: string[] = []
    const orders = { 'commit first': 0, 'release first': 0 }
    const isUndecided = () => Object.values(orders).includes(0) && names.length < MAX_DUELS
    // A few at a time, so that the two requests of a name overlap. The commit usually wins: in every second pair the
    // release starts first, by an increasing number of event loop iterations.
    while (names.length < DUELS || isUndecided()) {
      const batch = Array.from({ length: 10 }, (_, i) => `duel-${names.length + i}`)
      names.push(...batch)
      await Promise.all(
        batch.map(async (name, i) => {
          const [committer, releaser] = [fleet.next(), fleet.next()]
          const token = await reserveToken(committer, name)
          const releasing = i % 2 === 0 ? release(releaser, name) : null
          for (let iterations = releasing ? 4 * i : 0; iterations > 0; iterations -= 1) await new Promise(setImmediate)
          const [committed, released] = await Promise.all([
            commit(committer, name, token),
            releasing ?? release(releaser, name),
          ])
          expect(released.status).toBe(200)
          if (committed.status === 200 || committed.status === 202) {
            orders['commit first'] += 1
            expect(released.body.freed.state).toBe('active')
            expect(await listEvents(name)).toEqual(['reserved', 'committed', 'released'])
          } else {
            orders['release first'] += 1
            expect(committed.status).toBe(404)
            expect(released.body.freed.state).toBe('reserved')
            expect(await listEvents(name)).toEqual(['reserved', 'released'])
          }
        }),
      )
    }
    process.stdout.write(`release against commit: ${JSON.stringify(orders)}\n`)
    expect(orders['commit first']).toBeGreaterThan(0)
    expect(orders['release first']).toBeGreaterThan(0)
    await untilApplied(database.sql)
    await expectConsistentTables(database.sql)
    await expectDnsToMatch(
      fleet.next().dnsPort,
      await activeNames(database.sql),
      names.map(name => `${name}.${pool}`),
    )
  })

  test('names that are reserved, committed and released in a loop end with the records of their last holder', async () => {
    const names = Array.from({ length: 12 }, (_, i) => `churn-${i}`)
    await Promise.all(
      names.map(async (name, i) => {
        for (let turn = 1; turn <= 6; turn += 1) {
          const token = await reserveToken(fleet.next(), name)
          expect((await commit(fleet.next(), name, token, `192.0.${turn}.${i + 1}`)).status).toBeLessThan(300)
          if (turn < 6 || i % 2 === 0) expect((await release(fleet.next(), name)).status).toBeLessThan(300)
        }
      }),
    )
    await untilApplied(database.sql)
    await expectConsistentTables(database.sql)
    const active = (await activeNames(database.sql)).filter(row => row.subdomain.startsWith('churn-'))
    expect(active.map(row => row.address)).toEqual(
      names
        .flatMap((name, i) => (i % 2 === 1 ? [`${name} 192.0.6.${i + 1}`] : []))
        .sort()
        .map(row => row.split(' ')[1]),
    )
    await expectDnsToMatch(
      fleet.next().dnsPort,
      active,
      names.filter((_, i) => i % 2 === 0).map(name => `${name}.${pool}`),
    )
  })

  test('50 concurrent requests with one Idempotency-Key have one outcome: reserve, commit and release', async () => {
    for (const name of ['key-a', 'key-b', 'key-c']) {
      const headers = (verb: string) => ({ 'Idempotency-Key': `${verb}-${name}` })
      const same = (responses: ApiResponse[], status: number) => {
        expect(countStatuses(responses)).toEqual({ [status]: 50 })
        const [first] = responses
        for (const response of responses) expect(response.body).toEqual(first?.body)
        return first?.body
      }
      const reserved = await callConcurrently(50, false, api => reserve(api, name, headers('reserve')))
      const { reservationToken } = same(reserved, 201)

      const committed = await callConcurrently(50, false, api =>
        commit(api, name, reservationToken, '192.0.2.9', headers('commit')),
      )
      same(committed, 200)

      const released = await callConcurrently(50, false, api => release(api, name, headers('release')))
      same(released, 200)
      expect(await listEvents(name)).toEqual(['reserved', 'committed', 'released'])
    }
  })

  test('50 different concurrent requests with one key: one succeeds and the others are rejected', async () => {
    const responses = await callConcurrently(50, false, (api, i) =>
      reserve(api, `mixed-${i}`, { 'Idempotency-Key': 'mixed' }),
    )
    expect(countStatuses(responses)).toEqual({ 201: 1, 422: 49 })
    const [row] = await database.sql<{ count: number }[]>`
      select count(*) from pool_allocations where subdomain like 'mixed-%'`
    expect(row?.count).toBe(1)
  })

  test('processes that write to one zone concurrently lose no record', async () => {
    const names = Array.from({ length: 80 }, (_, i) => `wave-${i}`)
    const tokens = await Promise.all(names.map(name => reserveToken(fleet.next(), name)))
    const responses = await Promise.all(names.map((name, i) => commit(fleet.next(), name, tokens[i] ?? '')))
    expect(countStatuses(responses)).toEqual({ 200: names.length })
    await expectConsistentTables(database.sql)
    await expectDnsToMatch(
      fleet.next().dnsPort,
      (await activeNames(database.sql)).filter(row => row.subdomain.startsWith('wave-')),
      [],
    )
  })
})

describe(`${SWEEPERS} sweepers on one database`, () => {
  let database: TestDatabase
  let fleet: Replicas<Api>

  beforeAll(async () => {
    database = await createTestDatabase()
    fleet = await startReplicas(SWEEPERS, () =>
      startApi(database.url, { ...smallPoolEnv, ...patientEnv, PDM_SWEEPER_INTERVAL: '20ms' }),
    )
  })
  afterAll(async () => {
    await fleet?.kill()
    await database?.drop()
  })

  const insertReservations = (count: number, prefix: string, expiresIn: string) => database.sql`
    insert into pool_allocations
      (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
    select ${pool}, ${prefix} || n, 'reserved', now() - interval '1 hour', now() + ${expiresIn}::interval,
      sha256(gen_random_uuid()::text::bytea), ''
    from generate_series(1, ${count}::int) n`
  const expiries = async (pattern: string) => {
    const [row] = await database.sql<{ events: number; names: number }[]>`
      select count(*) as events, count(distinct subdomain) as names from allocation_history
      where event = 'expired' and subdomain like ${pattern}`
    return row
  }

  test('5,000 expired rows are deleted once each, and live rows are kept', async () => {
    await insertReservations(100, 'live-', '1 hour')
    await insertReservations(5_000, 'old-', '-1 second')
    await until('the expired rows are deleted', async () => {
      const [row] = await database.sql<{ count: number }[]>`
        select count(*) from pool_allocations where subdomain like 'old-%'`
      return row?.count === 0
    })
    expect(await expiries('old-%')).toEqual({ events: 5_000, names: 5_000 })
    expect(await expiries('live-%')).toEqual({ events: 0, names: 0 })
    const [live] = await database.sql<{ count: number }[]>`select count(*) from pool_allocations`
    expect(live?.count).toBe(100)
  })

  test('a name that expires during its renewal is either renewed and kept, or rejected and deleted', async () => {
    const names = Array.from({ length: 200 }, (_, i) => `renew-${i}`)
    const tokens = new Map<string, string>()
    for (let i = 0; i < names.length; i += 50) {
      const batch = names.slice(i, i + 50)
      await Promise.all(batch.map(async name => tokens.set(name, await reserveToken(fleet.next(), name))))
    }
    // The expiries are spread over the time of the renewals.
    await database.sql`
      update pool_allocations set reserved_at = now() - interval '1 minute',
        expires_at = now() + random() * interval '400 milliseconds'
      where subdomain like 'renew-%'`
    const counts = { kept: 0, lost: 0 }
    for (let i = 0; i < names.length; i += 20) {
      await Promise.all(
        names.slice(i, i + 20).map(async name => {
          const response = await renew(fleet.next(), name, tokens.get(name) ?? '')
          const expired = (await expiries(name))?.events
          if (response.status === 200) {
            counts.kept += 1
            expect(expired).toBe(0)
          } else {
            counts.lost += 1
            expect([404, 410]).toContain(response.status)
            await until(`${name} is swept`, async () => (await expiries(name))?.events === 1)
          }
        }),
      )
    }
    process.stdout.write(`renew against sweeper: ${JSON.stringify(counts)}\n`)
    const [live] = await database.sql<{ count: number }[]>`
      select count(*) from pool_allocations where subdomain like 'renew-%'`
    expect(live?.count).toBe(counts.kept)
  })

  test('expired names that are swept and reserved concurrently are reserved, with one expiry each', async () => {
    await insertReservations(300, 'again-', '-1 second')
    const responses = await Promise.all(Array.from({ length: 300 }, (_, i) => reserve(fleet.next(), `again-${i + 1}`)))
    expect(countStatuses(responses)).toEqual({ 201: 300 })
    expect(await expiries('again-%')).toEqual({ events: 300, names: 300 })
    const [live] = await database.sql<{ count: number }[]>`
      select count(*) from pool_allocations where subdomain like 'again-%' and expires_at > now()`
    expect(live?.count).toBe(300)
  })
})

describe('an empty database', () => {
  test(`${STARTING_PROCESSES} processes that start concurrently on it all become ready`, async () => {
    const database = await createTestDatabase({ schema: false })
    const fleet = await startReplicas(STARTING_PROCESSES, () =>
      startApi(database.url, { ...smallPoolEnv, ...patientEnv }),
    )
    const responses = await Promise.all(fleet.replicas.map(api => api.call('GET', '/readyz')))
    expect(countStatuses(responses)).toEqual({ 200: STARTING_PROCESSES })
    const token = await reserveToken(fleet.next(), 'acme')
    expect((await commit(fleet.next(), 'acme', token)).status).toBe(200)
    await fleet.kill()
    await database.drop()
  })
})

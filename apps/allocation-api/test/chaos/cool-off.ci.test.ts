import { setTimeout as sleep } from 'node:timers/promises'
import { createDatabaseClient, type Sql } from '@pool/runtime/database/client'
import { proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import {
  type Api,
  type ApiResponse,
  type Replicas,
  smallPoolEnv,
  startApi,
  startReplicas,
} from '@pool/test-kit/services.ts'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { hashToken } from '../../src/lib/token.ts'
import type { Caller } from '../../src/naming/naming.ts'
import { createTestDatabase, repositoryOptions, type TestDatabase, truncateAllocations } from '../support/database.ts'
import { holdLock, runInOrder, untilSessionsWait } from '../support/locks.ts'
import { commit, countStatuses, pool, release, reserve, reserveToken } from '../support/operations.ts'
import { createTokenRepository, type TokenRepository, tokenDigest } from '../support/token-repository.ts'

const COOL_OFF_MS = 600_000

/** As in interleavings.test.ts: both statements have their snapshot before the first one gets the row. */
describe('two statements that wait for the row of a name with a cool-off', () => {
  const caller: Caller = { actor: 'in-cluster', address: null, requestId: 'test' }
  const name = { poolDomain: pool, subdomain: 'acme' }
  const lineageId = '11111111-1111-4111-8111-111111111111'
  const fqdn = `acme.${pool}`
  const connections: Sql[] = []
  let database: TestDatabase
  let stores: [TokenRepository, TokenRepository, TokenRepository]

  const createStore = (): TokenRepository => {
    const sql = createDatabaseClient(database.url, { maxConnections: 1, applicationName: 'cool-off' })
    connections.push(sql)
    return createTokenRepository(sql, { ...repositoryOptions, coolOffMs: COOL_OFF_MS })
  }
  const records = (address: string) => [{ name: fqdn, type: 'A' as const, ttl: 60, values: [address] }]
  const takeBack = (store: TokenRepository, reservationToken: string) =>
    store.reserve({ ...name, createdBy: 'back' }, caller, { tokenHash: hashToken(reservationToken) })
  const reserveByOther = (store: TokenRepository) => store.reserve({ ...name, createdBy: 'other' }, caller)
  const activate = async (): Promise<string> => {
    const decision = await stores[0].reserve({ ...name, createdBy: 'first' }, caller)
    if (decision.kind !== 'granted') throw new Error(decision.kind)
    const { reservationToken } = decision
    const command = { ...name, reservationToken, sovereignFQDN: fqdn, loadBalancerIP: '192.0.2.1' }
    await stores[0].commit(command, records('192.0.2.1'), caller)
    return reservationToken
  }
  const readRow = async () => {
    const [row] = await database.sql<{ state: string; digest: string; lineage: string | null; isCooling: boolean }[]>`
      select state, encode(token_hash, 'hex') as digest, lineage_id as lineage,
        coalesce(cool_off_until > now(), false) as "isCooling" from pool_allocations`
    return row
  }
  const readEvents = async () => {
    const rows = await database.sql<{ line: string }[]>`
      select event || ' ' || from_state || ' ' || to_state as line from allocation_history order by id`
    return rows.map(({ line }) => line)
  }
  const firstLife = ['reserved none reserved', 'committed reserved active', 'released active none']

  beforeAll(async () => {
    database = await createTestDatabase()
    stores = [createStore(), createStore(), createStore()]
    for (const store of stores) await store.deleteExpired(1)
  })
  afterAll(async () => {
    for (const sql of connections) await sql.end({ timeout: 1 })
    await database?.drop()
  })
  afterEach(async () => {
    await truncateAllocations(database.sql)
  })

  test('a reserve queued behind the release of an active name is not granted', async () => {
    await activate()
    const [released, reserved] = await runInOrder(
      database.sql,
      name,
      () => stores[1].release(name, caller),
      () => reserveByOther(stores[2]),
    )
    expect(released.kind).toBe('released')
    expect(['conflict', 'cooling-off']).toContain(reserved.kind)
    expect(await readRow()).toMatchObject({ state: 'released', isCooling: true })
    expect((await reserveByOther(stores[2])).kind).toBe('cooling-off')
  })

  test('a take-back queued behind the release is granted, and the history has no expiry', async () => {
    const token = await activate()
    const [released, taken] = await runInOrder(
      database.sql,
      name,
      () => stores[1].release(name, caller),
      () => takeBack(stores[2], token),
    )
    expect([released.kind, taken.kind]).toEqual(['released', 'granted'])
    expect(await readRow()).toMatchObject({ state: 'reserved', isCooling: true })
    expect(await readEvents()).toEqual([...firstLife, 'reserved none reserved'])
  })

  test('of two take-backs with the same token, the first is granted', async () => {
    const token = await activate()
    await stores[0].release(name, caller)
    const [first, second] = await runInOrder(
      database.sql,
      name,
      () => takeBack(stores[1], token),
      () => takeBack(stores[2], token),
    )
    expect(first.kind).toBe('granted')
    expect(['conflict', 'cooling-off']).toContain(second.kind)
    expect(await readRow()).toMatchObject({
      digest: first.kind === 'granted' && tokenDigest(first.reservationToken),
    })
  })

  test.each(['take-back first', 'other client first'])('once the cool-off is over, the first wins: %s', async order => {
    const token = await activate()
    await stores[0].release(name, caller)
    await database.advance(COOL_OFF_MS)
    const back = () => takeBack(stores[1], token)
    const other = () => reserveByOther(stores[2])
    const isBackFirst = order === 'take-back first'
    const [first, second] = await runInOrder(database.sql, name, isBackFirst ? back : other, isBackFirst ? other : back)
    expect([first.kind, second.kind]).toEqual(['granted', 'conflict'])
    expect(await readEvents()).toEqual([...firstLife, 'reserved none reserved'])
  })

  test('a lift queued behind a take-back has no effect', async () => {
    const token = await activate()
    await stores[0].release(name, caller)
    const [taken, lifted] = await runInOrder(
      database.sql,
      name,
      () => takeBack(stores[1], token),
      () => stores[2].liftCoolOff(name, caller),
    )
    expect([taken.kind, lifted]).toEqual(['granted', false])
    expect(await readRow()).toMatchObject({ state: 'reserved', isCooling: true })
  })

  test('a reserve queued behind a lift is granted', async () => {
    await activate()
    await stores[0].release(name, caller)
    const [lifted, reserved] = await runInOrder(
      database.sql,
      name,
      () => stores[1].liftCoolOff(name, caller),
      () => reserveByOther(stores[2]),
    )
    expect([lifted, reserved.kind]).toEqual([true, 'granted'])
    expect(await readEvents()).toEqual([...firstLife, 'cool-off-lifted none none', 'reserved none reserved'])
  })

  test('a release queued behind a hold keeps the name for the lineage, without an end', async () => {
    const reservationToken = await activate()
    const [held, released] = await runInOrder(
      database.sql,
      name,
      () => stores[1].hold({ ...name, reservationToken }, lineageId),
      () => stores[2].release(name, caller),
    )
    expect([held, released.kind]).toEqual([true, 'released'])
    expect(await readRow()).toMatchObject({ state: 'released', lineage: lineageId })
    await database.advance(10 * COOL_OFF_MS)
    expect((await reserveByOther(stores[0])).kind).toBe('conflict')
    expect((await takeBack(stores[0], reservationToken)).kind).toBe('conflict')
    expect(await stores[0].deleteExpired(10)).toBe(0)
  })

  test('a hold queued behind the release does not get the name', async () => {
    const reservationToken = await activate()
    const [released, held] = await runInOrder(
      database.sql,
      name,
      () => stores[1].release(name, caller),
      () => stores[2].hold({ ...name, reservationToken }, lineageId),
    )
    expect([released.kind, held]).toEqual(['released', false])
    expect(await readRow()).toMatchObject({ state: 'released', lineage: null })
  })

  test('the end of a hold queued behind the release starts the cool-off', async () => {
    const reservationToken = await activate()
    await stores[0].hold({ ...name, reservationToken }, lineageId)
    const [released, letGo] = await runInOrder(
      database.sql,
      name,
      () => stores[1].release(name, caller),
      () => stores[2].letGo(name, lineageId),
    )
    expect([released.kind, letGo]).toEqual(['released', true])
    expect(await readRow()).toMatchObject({ state: 'released', lineage: null, isCooling: true })
    expect((await reserveByOther(stores[0])).kind).toBe('cooling-off')
  })

  test('an update queued behind the release returns not-found, and no records are desired', async () => {
    const reservationToken = await activate()
    const update = { ...name, reservationToken, loadBalancerIP: '192.0.2.9' }
    const [released, updated] = await runInOrder(
      database.sql,
      name,
      () => stores[1].release(name, caller),
      () => stores[2].update(update, records('192.0.2.9'), caller),
    )
    expect([released.kind, updated.kind]).toEqual(['released', 'not-found'])
    expect(await database.sql`select desired from dns_names`).toEqual([{ desired: [] }])
  })

  test('a release queued behind an update withdraws the records of the update', async () => {
    const reservationToken = await activate()
    const update = { ...name, reservationToken, loadBalancerIP: '192.0.2.9' }
    const [updated, released] = await runInOrder(
      database.sql,
      name,
      () => stores[1].update(update, records('192.0.2.9'), caller),
      () => stores[2].release(name, caller),
    )
    expect(updated.kind).toBe('updated')
    expect(released).toMatchObject({ kind: 'released', allocation: { loadBalancerIP: '192.0.2.9' } })
    expect(await database.sql`select desired from dns_names`).toEqual([{ desired: [] }])
    expect(await readEvents()).toEqual([...firstLife.slice(0, 2), 'updated active active', 'released active none'])
  })

  test('an update queued behind an update of the same name has the newer version', async () => {
    const reservationToken = await activate()
    const updateTo = (store: TokenRepository, loadBalancerIP: string) =>
      store.update({ ...name, reservationToken, loadBalancerIP }, records(loadBalancerIP), caller)
    const [first, second] = await runInOrder(
      database.sql,
      name,
      () => updateTo(stores[1], '192.0.2.8'),
      () => updateTo(stores[2], '192.0.2.9'),
    )
    if (first.kind !== 'updated' || second.kind !== 'updated') throw new Error('not updated')
    expect(second.version ?? 0).toBeGreaterThan(first.version ?? 0)
    const [row] = await database.sql`select version, desired #>> '{0,values,0}' as address from dns_names`
    expect(row).toEqual({ version: second.version, address: '192.0.2.9' })
  })
})

const PROCESSES = 4
const CALLERS = 200
const ROUNDS = proofSize(20, 2)

describe('four processes and a cool-off', () => {
  let database: TestDatabase
  let fleet: Replicas<Api>
  beforeAll(async () => {
    database = await createTestDatabase()
    fleet = await startReplicas(PROCESSES, () =>
      startApi(database.url, {
        ...smallPoolEnv,
        ...{ PDM_NAME_COOL_OFF: '10m', PDM_SWEEPER_INTERVAL: '50ms' },
        ...{ PDM_DATABASE_TIMEOUT: '1m', PDM_DNS_COMMIT_WAIT: '1m' },
      }),
    )
  })
  afterAll(async () => {
    reportProof(`cool-off: ${ROUNDS} rounds of each of 3 races, ${CALLERS} requests each`)
    await fleet?.kill()
    await database?.drop()
  })

  const activate = async (name: string): Promise<string> => {
    const token = await reserveToken(fleet.next(), name)
    expect((await commit(fleet.next(), name, token)).status).toBeLessThan(300)
    return token
  }
  const takeBack = (api: Api, subdomain: string, reservationToken: string): Promise<ApiResponse> =>
    api.call('POST', `/api/v1/pool/${pool}/reserve`, { subdomain, reservationToken })
  const listEvents = async (subdomain: string) => {
    const rows = await database.sql<{ event: string }[]>`
      select event from allocation_history where subdomain = ${subdomain} and actor <> 'convergence' order by id`
    return rows.map(({ event }) => event)
  }
  /** Not `reservedAt`, which is the start of the statement: it can wait for the sweeper to delete the row. */
  const readGrantTime = async (subdomain: string): Promise<number> => {
    const [granted] = await database.sql<{ at: Date }[]>`
      select at from allocation_history where subdomain = ${subdomain} and event = 'reserved' order by id desc limit 1`
    return granted?.at.getTime() ?? Number.NaN
  }
  /** Ends the cool-off in `ms`. Returns the time at which the name becomes available. */
  const endCoolOffIn = async (subdomain: string, ms: number): Promise<number> => {
    const [row] = await database.sql<[{ at: Date }]>`
      update pool_allocations
      set cool_off_until = date_trunc('milliseconds', clock_timestamp()) + ${ms}::float8 * interval '1 millisecond'
      where subdomain = ${subdomain} and state = 'released' returning cool_off_until as at`
    return row.at.getTime()
  }
  /** Sends a request at each of `count` moments, evenly spread around the instant. */
  const callAround = (instant: number, spreadMs: number, count: number, call: (i: number) => Promise<ApiResponse>) =>
    Promise.all(
      Array.from({ length: count }, async (_, i) => {
        await sleep(instant - spreadMs + (2 * spreadMs * i) / count - Date.now())
        return call(i)
      }),
    )

  test.each(Array.from({ length: ROUNDS }, (_, i) => i))(
    'of 200 reserves around the instant at which a name becomes free, one succeeds, and none before it (round %i)',
    async round => {
      const name = `instant-${round}`
      await activate(name)
      await release(fleet.next(), name)
      const before = await reserve(fleet.next(), name)
      const availableAt = await endCoolOffIn(name, 700)
      const responses = await callAround(availableAt, 300, CALLERS, i =>
        reserve(fleet.next(), name, i % 3 === 0 ? { 'Idempotency-Key': `${name}-${i}` } : undefined),
      )
      expect(countStatuses(responses)).toEqual({ 201: 1, 409: CALLERS - 1 })
      expect(await readGrantTime(name)).toBeGreaterThanOrEqual(availableAt)
      expect(before.body.error).toBe('cooling-off')
      // On a busy machine, all of them may come after the instant.
      const early = responses.filter(({ body }) => body.error === 'cooling-off')
      for (const { body } of early) expect(body.availableAt).toBe(new Date(availableAt).toISOString())
      expect(await listEvents(name)).toEqual(['reserved', 'committed', 'released', 'reserved'])
    },
  )

  test.each(Array.from({ length: ROUNDS }, (_, i) => i))(
    'of 200 reserves during the release of an active name, none succeeds (round %i)',
    async round => {
      const name = `release-${round}`
      const token = await activate(name)
      const gate =
        round % 2 === 1 && (await holdLock(database.sql, tx => tx`lock table pool_allocations in share mode`))
      const calls = Array.from({ length: CALLERS }, (_, i) =>
        i === CALLERS / 2 ? release(fleet.next(), name) : reserve(fleet.next(), name),
      )
      if (gate) await untilSessionsWait(database.sql, PROCESSES).finally(() => gate.release())
      const responses = await Promise.all(calls)
      const released = responses.splice(CALLERS / 2, 1)[0]
      expect(released?.status).toBeLessThan(300)
      expect(countStatuses(responses)).toEqual({ 409: CALLERS - 1 })
      expect((await reserve(fleet.next(), name)).body.error).toBe('cooling-off')
      expect((await takeBack(fleet.next(), name, token)).status).toBe(201)
      expect(await listEvents(name)).toEqual(['reserved', 'committed', 'released', 'reserved'])
    },
  )

  test.each(Array.from({ length: ROUNDS }, (_, i) => i))(
    'around the end of the cool-off, either the former client or one other gets the name; before it, only the former client (round %i)',
    async round => {
      const name = `expiry-${round}`
      const token = await activate(name)
      await release(fleet.next(), name)
      const availableAt = await endCoolOffIn(name, 500)
      // The former client tries once, at another moment in each round.
      const turn = Math.floor((CALLERS * (round + 1)) / (ROUNDS + 1))
      const responses = await callAround(availableAt, 200, CALLERS, i =>
        i === turn ? takeBack(fleet.next(), name, token) : reserve(fleet.next(), name),
      )
      const winners = responses.flatMap(({ status }, i) => (status === 201 ? [i] : []))
      expect(winners).toHaveLength(1)
      if ((await readGrantTime(name)) < availableAt) expect(winners).toEqual([turn])
      expect(await listEvents(name)).toEqual(['reserved', 'committed', 'released', 'reserved'])
    },
  )
})

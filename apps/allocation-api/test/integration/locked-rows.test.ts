import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { missingPgbouncer, startPgbouncer } from '@pool/test-kit/pgbouncer.ts'
import { until } from '@pool/test-kit/poll.ts'
import { type Api, type ApiResponse, startApi } from '@pool/test-kit/services.ts'
import { startTcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hashIdempotencyKey } from '../../src/lib/token.ts'
import { untilApplied } from '../support/consistency.ts'
import { createTestDatabase, type TestDatabase, useTestDatabase } from '../support/database.ts'
import {
  countLockWaiters,
  holdLock,
  lockRow,
  untilBlocks,
  untilNoStatementRuns,
  untilSessionsWait,
} from '../support/locks.ts'
import { check, commit, countStatuses, pool, release, renew, reserve, reserveToken } from '../support/operations.ts'

const TIMEOUT_MS = 2_000
const env = { PDM_DATABASE_TIMEOUT: `${TIMEOUT_MS}ms`, PDM_DATABASE_POOL_SIZE: '4' }
/** For a process whose requests wait for as long as the row is locked. */
const patientEnv = { ...env, PDM_DATABASE_TIMEOUT: '1m', PDM_DNS_COMMIT_WAIT: '1m' }

describe('a row that stays locked', () => {
  let database: TestDatabase
  let api: Api
  let other: Api
  let patient: Api

  beforeAll(async () => {
    database = await createTestDatabase()
    ;[api, other, patient] = await Promise.all([
      startApi(database.url, env),
      startApi(database.url, env),
      startApi(database.url, patientEnv),
    ])
  })
  afterAll(async () => {
    await Promise.all([api, other, patient].map(one => one?.process.kill()))
    await database?.drop()
  })

  const name = (subdomain: string) => ({ poolDomain: pool, subdomain })
  const listEvents = async (subdomain: string): Promise<string[]> => {
    const rows = await database.sql<{ event: string }[]>`
      select event from allocation_history where subdomain = ${subdomain} and actor <> 'convergence' order by id`
    return rows.map(row => row.event)
  }
  /**
   * Sends requests that wait for the locked row, and then requests of every kind for other names, which succeed while the
   * first ones wait. Resolves with the responses of the first ones: they come when the row is free.
   */
  const expectOthersServed = async (
    prefix: string,
    sendWaiting: (api: Api) => Promise<ApiResponse>[],
  ): Promise<{ readonly waiting: readonly Promise<ApiResponse>[] }> => {
    let answered = 0
    const waiting = sendWaiting(patient).map(response =>
      response.finally(() => {
        answered += 1
      }),
    )
    await untilSessionsWait(database.sql, 1)
    const tokens = await Promise.all(
      Array.from({ length: 10 }, (_, i) => reserveToken(patient, `${prefix}-token-${i}`)),
    )
    const responses = await Promise.all([
      ...Array.from({ length: 50 }, (_, i) => reserve(patient, `${prefix}-beside-${i}`)),
      ...Array.from({ length: 10 }, (_, i) =>
        reserve(patient, `${prefix}-keyed-${i}`, { 'Idempotency-Key': `${prefix}-${i}` }),
      ),
      ...Array.from({ length: 20 }, (_, i) => check(patient, `${prefix}-free-${i}`)),
      ...tokens.map((token, i) => renew(patient, `${prefix}-token-${i}`, token)),
    ])
    expect(countStatuses(responses)).toEqual({ 200: 30, 201: 60 })
    expect(answered).toBe(0)
    return { waiting }
  }

  test('delays no request for another name; its own requests get 503, and nothing happens after that', async () => {
    const token = await reserveToken(api, 'locked')
    const held = await lockRow(database.sql, name('locked'))
    const hot = Array.from({ length: 20 }, (_, i) => [
      reserve(api, 'locked'),
      renew(api, 'locked', token),
      commit(api, 'locked', token),
      release(api, 'locked', { 'Idempotency-Key': `locked-${i}` }),
    ]).flat()
    await untilSessionsWait(database.sql, 1)
    // One statement waits for the name, whatever the number of requests. Batches of reserves may be about to end their wait.
    expect(await countLockWaiters(database.sql)).toBeLessThan(10)
    const { waiting } = await expectOthersServed('beside', one =>
      Array.from({ length: 20 }, () => reserve(one, 'locked')),
    )
    expect(countStatuses(await Promise.all(hot))).toEqual({ 503: 80 })
    const logged = await until('every 503 is logged', () => {
      const lines = api.lines.filter(line => line.includes('"status":503')).map(line => JSON.parse(line))
      return lines.length >= hot.length ? lines : undefined
    })
    const causes = new Set(logged.map(({ cause }) => cause))
    expect(
      [...causes].filter(cause => !/^(?:the row is locked|no answer within \d+ ms|55P03|57PD2)$/.test(cause)),
    ).toEqual([])
    await held.release()
    expect(countStatuses(await Promise.all(waiting))).toEqual({ 409: 20 })
    await untilNoStatementRuns(database.sql)
    expect(await listEvents('locked')).toEqual(['reserved'])
    expect((await renew(api, 'locked', token)).status).toBe(200)
    expect((await commit(api, 'locked', token)).status).toBe(200)
  })

  test('names that another transaction inserts delay no request for another name, and are free after its rollback', async () => {
    // Of the four connections of the fast lane, three would wait if their statements did not limit that.
    const names = ['inserted-1', 'inserted-2', 'inserted-3']
    const held = await holdLock(
      database.sql,
      tx => tx`
        insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
        select ${pool}, name, 'reserved', now(), now() + interval '1 hour', sha256(''), 'other'
        from jsonb_array_elements_text(${database.sql.json(names)}) as name`,
    )
    const reserves: Promise<ApiResponse>[] = []
    for (const inserted of names) {
      // Each is alone in its batch.
      reserves.push(reserve(patient, inserted))
      await untilSessionsWait(database.sql, reserves.length)
    }
    const { waiting } = await expectOthersServed('beside-inserted', () => reserves)
    await held.release()
    expect(countStatuses(await Promise.all(waiting))).toEqual({ 201: 3 })
    for (const inserted of names) expect(await listEvents(inserted)).toEqual(['reserved'])
  })

  test('a release that got 503 does not take place when the lock goes; a repetition does', async () => {
    expect((await commit(api, 'active', await reserveToken(api, 'active'))).status).toBe(200)
    const held = await lockRow(database.sql, name('active'))
    // On a busy machine the database can take too long to say that the row is locked.
    await until('a release is told why', async () => {
      const { status, body } = await release(api, 'active')
      expect(status).toBe(503)
      return /row stayed locked. Nothing changed/.test(body.detail)
    })
    await held.release()
    await untilNoStatementRuns(database.sql)
    expect((await api.call('GET', `/api/v1/pool/${pool}/active`)).body?.state ?? 'active').toBe('active')
    expect(await listEvents('active')).toEqual(['reserved', 'committed'])
    expect((await release(api, 'active')).status).toBe(200)
  })

  test('a request and its repetitions with the same key on both replicas have one outcome', async () => {
    await reserveToken(api, 'keyed')
    const held = await lockRow(database.sql, name('keyed'))
    const headers = { 'Idempotency-Key': 'release-keyed' }
    const first = [api, other, api, other].map(one => release(one, 'keyed', headers))
    await untilSessionsWait(database.sql, 1)
    const { waiting } = await expectOthersServed('beside-key', one => [reserve(one, 'keyed')])
    expect(countStatuses(await Promise.all(first))).toEqual({ 503: 4 })
    await held.release()
    expect(countStatuses(await Promise.all(waiting))).toEqual({ 409: 1 })
    const again = await Promise.all([api, other, api, other].map(one => release(one, 'keyed', headers)))
    expect(countStatuses(again)).toEqual({ 200: 4 })
    expect(await listEvents('keyed')).toEqual(['reserved', 'released'])
  })

  test('of dns_names: the records of other names are published meanwhile, and those of its name afterwards', async () => {
    const activate = async (subdomain: string) => commit(patient, subdomain, await reserveToken(patient, subdomain))
    const names = ['records-same', 'records-changed']
    expect(countStatuses(await Promise.all(names.map(activate)))).toEqual({ 200: 2 })
    // No sync starts before the rows are locked.
    const zone = await holdLock(database.sql, tx => tx`select from zone_leases where name = ${pool} for update`)
    // Both are due: one differs from the zone, the other does not.
    await database.sql`
      update dns_names set version = nextval('dns_version'), next_attempt_at = now(),
        desired = case when subdomain = 'records-same' then desired else replace(desired::text, '192.0.2.1', '192.0.2.9')::jsonb end
      where subdomain in ${database.sql(names)}`
    const held = await holdLock(
      database.sql,
      tx => tx`select from dns_names where subdomain in ${tx(names)} for update`,
    )
    await zone.release()
    const published = await Promise.all(['one', 'two', 'three'].map(activate))
    expect((await release(api, 'records-same')).status).toBe(503)
    const isApplied = database.sql<{ subdomain: string; isApplied: boolean }[]>`
      select subdomain, applied_version = version as "isApplied" from dns_names
      where subdomain in ${database.sql(names)}`
    expect((await isApplied).map(row => row.isApplied)).toEqual([false, false])
    await held.release()
    expect(countStatuses(published)).toEqual({ 200: 3 })
    await untilApplied(database.sql)
    expect((await release(api, 'records-same')).status).toBe(200)
  })

  test('more locked names than connections that wait: one that is locked briefly is served, and so are all others', async () => {
    const names = Array.from({ length: 6 }, (_, i) => `many-${i}`)
    for (const one of [...names, 'short']) await reserveToken(api, one)
    const held = await Promise.all(names.map(one => lockRow(database.sql, name(one))))
    const sendHot = (one: Api) => names.flatMap(hot => [release(one, hot), reserve(one, hot)])
    const rejected = sendHot(api)
    await untilSessionsWait(database.sql, 4)
    const { waiting } = await expectOthersServed('many', sendHot)
    const short = await lockRow(database.sql, name('short'))
    const response = release(patient, 'short')
    await untilBlocks(database.sql, short)
    await short.release()
    expect((await response).status).toBe(200)
    expect(countStatuses(await Promise.all(rejected))).toEqual({ 503: 12 })
    await Promise.all(held.map(lock => lock.release()))
    expect(countStatuses(await Promise.all(waiting))).not.toHaveProperty('503')
  })

  test.each([
    [
      'inserted by a transaction that does not end',
      'ghost',
      (subdomain: string) =>
        holdLock(
          database.sql,
          tx => tx`
          insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
          select ${pool}, name, 'reserved', now(), now() + interval '1 hour', sha256('x'), 'other'
          from (values (${subdomain}), (${`${subdomain}-keyed`})) as inserted (name)`,
        ),
    ],
    [
      'of an Idempotency-Key',
      'key-of',
      (subdomain: string) =>
        holdLock(
          database.sql,
          tx => tx`
          insert into idempotency_keys (key_hash, fingerprint, expires_at, result)
          values (decode(${hashIdempotencyKey(subdomain)}, 'hex'), sha256('x'), now() + interval '1 hour', '{}')`,
        ),
    ],
  ])('%s: the same', async (_, subdomain, lock) => {
    const held = await lock(subdomain)
    const hot = Array.from({ length: 10 }, () => [
      reserve(api, subdomain),
      reserve(api, `${subdomain}-keyed`, { 'Idempotency-Key': subdomain }),
    ]).flat()
    await untilSessionsWait(database.sql, 1)
    const { waiting } = await expectOthersServed(subdomain, one => [
      reserve(one, `${subdomain}-keyed`, { 'Idempotency-Key': subdomain }),
    ])
    const statuses = countStatuses(await Promise.all(hot))
    await held.release()
    expect(countStatuses(await Promise.all(waiting))).not.toHaveProperty('503')
    expect(statuses[503]).toBeGreaterThanOrEqual(10)
    expect(statuses[500]).toBeUndefined()
  })
})

describe('sessions', async () => {
  const database = await useTestDatabase()

  test('end soon after their client is gone, although they wait for a lock', async () => {
    const proxy = await startTcpProxy(Number(new URL(database.url).port))
    const url = Object.assign(new URL(database.url), { port: String(proxy.port) }).href
    // The timeout is longer than the test, so that no lock_timeout ends the sessions.
    const api = await startApi(url, { ...env, PDM_DATABASE_TIMEOUT: '30s' })
    const held = await holdLock(database.sql, tx => tx`lock table pool_allocations in access exclusive mode`)
    try {
      const responses = Array.from({ length: 3 }, (_, i) => release(api, `cut-${i}`).catch(() => null))
      await untilSessionsWait(database.sql, 3)
      await api.process.kill()
      proxy.resetAll()
      await until('the sessions end', async () => (await countLockWaiters(database.sql)) === 0)
      await Promise.all(responses)
    } finally {
      await held.release()
      await api.process.kill()
      await proxy.close()
    }
  })

  test.skipIf(shouldSkip(missingPgbouncer))(
    'behind a pooler, which carries no settings, the start says what to execute, and then finds it executed',
    async () => {
      const startBehindPooler = async () => {
        const pgbouncer = await startPgbouncer(database.url)
        try {
          const api = await startApi(`${pgbouncer.url}?prepare=false`, env)
          await reserveToken(api, `pooled-${Date.now()}`)
          await api.process.kill()
          return api.lines.filter(line => line.includes('alter role')).map(line => JSON.parse(line).remedy as string)
        } finally {
          // The sessions of the pooler end with it.
          await pgbouncer.stop()
        }
      }
      const remedies = await startBehindPooler()
      expect(remedies).toEqual([
        expect.stringMatching(
          /client_connection_check_interval = '2s'.* lock_timeout = '2000ms'.* idle_in_transaction_session_timeout/,
        ),
      ])
      // For this database only, because the role belongs to all tests.
      const inDatabase = `in database ${new URL(database.url).pathname.slice(1)}`
      await database.sql.unsafe((remedies[0] ?? '').replaceAll(/alter role "\w+"/g, alter => `${alter} ${inDatabase}`))
      expect(await startBehindPooler()).toEqual([])
    },
  )
})

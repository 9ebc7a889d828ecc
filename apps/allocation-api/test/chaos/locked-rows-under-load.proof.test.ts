import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sql } from '@pool/runtime/database/client'
import { type DedicatedPostgres, startDedicatedPostgres } from '@pool/test-kit/dedicated-postgres.ts'
import { createPrng } from '@pool/test-kit/prng.ts'
import { isProof, proofSize, reportProof } from '@pool/test-kit/proof-size.ts'
import { type Api, startApi } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectConsistentTables } from '../support/consistency.ts'
import { holdLock, lockRow } from '../support/locks.ts'
import { check, commit, pool, release, renew, reserve, reserveToken } from '../support/operations.ts'

const LOCKED_S = proofSize(60, 3)
/** Beside other tests fewer, which a busy machine can respond to in time. */
const RATE = isProof ? 200 : 50
/** Requests per second for the locked row, in addition. */
const HOT_RATE = 20
/** The p99 with the lock, as a multiple of that without it. */
const MAX_RATIO = 2
const MIN_P99_MS = 5
/** One statement of the row at a time, one that a batch sent before the row was known to be locked, and one that times out. */
const MAX_WAITING = 3
const TIMED_OUT = proofSize(10_000, 300)
const timeout = 180_000 + 20_000 * LOCKED_S

const percentile = (values: readonly number[], percent: number): number =>
  values.toSorted((a, b) => a - b)[Math.ceil((values.length * percent) / 100) - 1] ?? 0

describe('locked rows under load', () => {
  let postgres: DedicatedPostgres
  beforeAll(async () => {
    postgres = await startDedicatedPostgres()
    const sql = postgres.connect()
    await sql`alter system set track_commit_timestamp = on`
    await sql.end()
    await postgres.stop('fast')
    await postgres.start()
  })
  afterAll(() => postgres?.remove())

  test(`one row locked for ${LOCKED_S} s: other requests are as fast as without, and at most ${MAX_WAITING} connections wait`, {
    timeout,
  }, async () => {
    const url = await postgres.createDatabase()
    const api = await startApi(url)
    const sql = postgres.connect(url)
    try {
      const token = await reserveToken(api, 'locked')
      const tokens = await Promise.all(Array.from({ length: 50 }, (_, i) => reserveToken(api, `held-${i}`)))
      let sent = 0
      const sendOther = async (): Promise<number> => {
        sent += 1
        const i = sent
        const started = performance.now()
        const response = await (i % 4 === 0
          ? reserve(api, `other-${i}`)
          : i % 4 === 1
            ? check(api, `other-${i - 1}`)
            : i % 4 === 2
              ? reserve(api, `keyed-${i}`, { 'Idempotency-Key': `keyed-${i}` })
              : renew(api, `held-${i % 50}`, tokens[i % 50] ?? ''))
        expect(response.status).toBeLessThan(300)
        return performance.now() - started
      }
      /** At a fixed rate, whatever the responses take. */
      const run = async (seconds: number) => {
        const responses: Promise<number>[] = []
        const startedAt = performance.now()
        while (responses.length < seconds * RATE) {
          const due = ((performance.now() - startedAt) * RATE) / 1_000
          while (responses.length < due) responses.push(sendOther())
          await sleep(2)
        }
        return Promise.all(responses)
      }
      const countBackends = async () => {
        const [row] = await sql<{ all: number; waiting: number }[]>`
          select count(*) as all, count(*) filter (where wait_event_type = 'Lock') as waiting from pg_stat_activity
          where datname = current_database() and application_name like 'allocation-api%'`
        return row ?? { all: 0, waiting: 0 }
      }

      await run(1)
      const without = await run(LOCKED_S)

      const held = await lockRow(sql, { poolDomain: pool, subdomain: 'locked' })
      const hot = { statuses: new Map<number, number>(), pending: new Set<Promise<void>>() }
      const counts: { readonly all: number; readonly waiting: number }[] = []
      let isOver = false
      const sendHot = async () => {
        for (let i = 0; !isOver; i += 1) {
          const call = [
            () => renew(api, 'locked', token),
            () => reserve(api, 'locked'),
            () => commit(api, 'locked', token),
            () => release(api, 'locked', { 'Idempotency-Key': `locked-${i % 5}` }),
          ][i % 4]
          const response = call?.().then(({ status }) => {
            hot.statuses.set(status, (hot.statuses.get(status) ?? 0) + 1)
          })
          if (response) {
            hot.pending.add(response)
            void response.finally(() => hot.pending.delete(response))
          }
          if (i % HOT_RATE === HOT_RATE - 1) counts.push(await countBackends())
          await sleep(1_000 / HOT_RATE)
        }
      }
      const heat = sendHot()
      const withLock = await run(LOCKED_S)
      isOver = true
      await heat
      await Promise.all(hot.pending)
      await held.release()

      const all = counts.map(count => count.all)
      const waiting = counts.map(count => count.waiting)
      const [before, after] = [percentile(without, 99), percentile(withLock, 99)]
      reportProof(
        `one row locked for ${LOCKED_S} s under ${RATE} requests/s: p99 of the others ${after.toFixed(1)} ms, without ` +
          `the lock ${before.toFixed(1)} ms (p50 ${percentile(withLock, 50).toFixed(1)}, ${percentile(without, 50).toFixed(1)}); ` +
          `backends ${Math.min(...all)} to ${Math.max(...all)}, of which up to ${Math.max(...waiting)} waited; requests for the row: ` +
          JSON.stringify(Object.fromEntries(hot.statuses)),
      )
      expect([...hot.statuses.keys()]).toEqual([503])
      // Beside other tests the p99 varies by more than the factor. A request that waited for the row would have got a 503.
      if (isProof) expect(after).toBeLessThanOrEqual(MAX_RATIO * Math.max(before, MIN_P99_MS))
      expect(Math.max(...waiting)).toBeLessThanOrEqual(MAX_WAITING)
      expect(await sql`select event from allocation_history where subdomain = 'locked'`).toEqual([
        { event: 'reserved' },
      ])
    } finally {
      await api.process.kill()
    }
  })

  test(`${TIMED_OUT} writes that timed out behind locks, table locks and a suspended server: none takes place after its 503`, {
    timeout,
  }, async () => {
    const url = await postgres.createDatabase()
    const TIMEOUT_MS = 300
    const env = { PDM_DATABASE_TIMEOUT: `${TIMEOUT_MS}ms`, PDM_DNS_COMMIT_WAIT: '100ms', PDM_RESERVATION_TTL: '5s' }
    const apis: Api[] = await Promise.all([startApi(url, env), startApi(url, env)])
    const sql = postgres.connect(url)
    const lockers = Array.from({ length: 8 }, () => postgres.connect(url))
    const random = createPrng(24)
    const names = Array.from({ length: 12 }, (_, i) => `name-${i}`)
    const tokens = new Map<string, string>()
    const acknowledged: string[] = []
    /** Unix time of the 503 by request id. */
    const timedOut = new Map<string, number>()
    const others = new Map<number, number>()
    const suspensions: { readonly from: number; readonly to: number }[] = []
    let isOver = false

    const callOnce = async (api: Api) => {
      const name = random.pick(names)
      const id = randomUUID()
      const keyed = random.chance(0.5)
        ? { 'Idempotency-Key': random.chance(0.3) ? `${name}-${random.below(5)}` : id }
        : {}
      const headers = { 'X-Request-Id': id, ...keyed }
      const response = await random.pick([
        () => reserve(api, name, headers),
        () => commit(api, name, tokens.get(name) ?? randomUUID(), '192.0.2.1', headers),
        () => release(api, name, headers),
      ])()
      if (response.body?.reservationToken) tokens.set(name, response.body.reservationToken)
      if (response.status === 503) timedOut.set(id, Date.now())
      // A repetition under the key of another request is acknowledged with the effect of that one.
      else if (response.status < 300 && !('Idempotency-Key' in keyed && keyed['Idempotency-Key'] !== id)) {
        acknowledged.push(id)
      } else others.set(response.status, (others.get(response.status) ?? 0) + 1)
    }
    const runCaller = async (i: number) => {
      const api = apis[i % apis.length]
      while (!isOver && api) await callOnce(api)
    }
    /** A row, key or table is locked for up to twice the timeout. */
    const runLocker = async (locker: Sql) => {
      while (!isOver) {
        const name = random.pick(names)
        const held = await random
          .pick([
            () => lockRow(locker, { poolDomain: pool, subdomain: name }),
            () => lockRow(locker, { poolDomain: pool, subdomain: name }),
            () => holdLock(locker, tx => tx`select from dns_names where subdomain = ${name} for update`),
            () => holdLock(locker, tx => tx`select from idempotency_keys limit 50 for update skip locked`),
          ])()
          .catch(() => null)
        await sleep(random.below(2 * TIMEOUT_MS))
        await held?.release()
      }
    }
    const runFaults = async () => {
      while (!isOver) {
        await sleep(1_500)
        const from = Date.now()
        postgres.freeze()
        await sleep(TIMEOUT_MS * 1.5)
        postgres.thaw()
        suspensions.push({ from, to: Date.now() })
        await sleep(500)
        const [first] = lockers
        const held =
          first && (await holdLock(first, tx => tx`lock table pool_allocations in share mode`).catch(() => null))
        await sleep(TIMEOUT_MS * 1.2)
        await held?.release()
      }
    }
    try {
      const callers = Array.from({ length: 60 }, (_, i) => runCaller(i))
      const faults = [...lockers.slice(1).map(runLocker), runFaults()]
      while (timedOut.size < TIMED_OUT) await sleep(50)
      isOver = true
      await Promise.all([...callers, ...faults])
      // Longer than any statement can still wait.
      await sleep(2 * TIMEOUT_MS)
      const rows = await sql<{ id: string; count: number; at: number; committedAt: number }[]>`
        select request_id as id, count(*) filter (where event <> 'expired'),
          extract(epoch from max(at))::float8 * 1000 as at,
          extract(epoch from max(pg_xact_commit_timestamp(xmin)))::float8 * 1000 as "committedAt"
        from allocation_history where request_id is not null group by 1`
      const byId = new Map(rows.map(row => [row.id, row]))
      const landed = [...timedOut].flatMap(([id, respondedAt]) => {
        const row = byId.get(id)
        return row ? [{ ...row, respondedAt }] : []
      })
      const after = landed.filter(({ committedAt, respondedAt }) => committedAt > respondedAt)
      reportProof(
        `${timedOut.size} writes timed out behind locks and a suspended server; ${landed.length} had taken place, ` +
          `${after.length} of them were being committed when the server was suspended, none took place later; ` +
          `${acknowledged.length} acknowledged ones took place once; ` +
          `other responses: ${JSON.stringify(Object.fromEntries(others))}`,
      )
      const wasSuspended = ({ at, committedAt }: (typeof landed)[number]) =>
        suspensions.some(({ from, to }) => from <= committedAt && to >= at)
      expect(after.filter(one => !wasSuspended(one) || one.at > one.respondedAt)).toEqual([])
      expect(acknowledged.filter(id => byId.get(id)?.count !== 1)).toEqual([])
      expect(acknowledged.length).toBeGreaterThan(0)
      expect(others.get(500)).toBeUndefined()
      await expectConsistentTables(sql)
    } finally {
      isOver = true
      postgres.thaw()
      await Promise.all(apis.map(api => api.process.kill()))
    }
  })
})

import { existsSync, readFileSync } from 'node:fs'
import { type DedicatedPostgres, startDedicatedPostgres } from '@pool/test-kit/dedicated-postgres.ts'
import { missingProcFiles, shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { timed, until } from '@pool/test-kit/poll.ts'
import { proofSize } from '@pool/test-kit/proof-size.ts'
import { type Api, startApi } from '@pool/test-kit/services.ts'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { expectConsistentTables, untilApplied } from '../support/consistency.ts'
import { type LoadGenerator, lostWrites, startLoad, unexpectedOutcomes } from '../support/load.ts'
import { commit, release, reserve, reserveToken } from '../support/operations.ts'
import { tokenDigest } from '../support/token-repository.ts'

const CALLERS = 16
/** PDM_DATABASE_TIMEOUT. */
const STATEMENT_TIMEOUT_MS = 1_000
/** For a busy machine. A request that waited for the database would wait for as long as the outage lasts. */
const SLACK_MS = 10_000
const CUTS = proofSize(60, 10)
const env = { PDM_DATABASE_TIMEOUT: `${STATEMENT_TIMEOUT_MS}ms`, PDM_DNS_COMMIT_WAIT: '500ms' }
/** A commit takes two statements and the wait for its records. */
const MAX_LATENCY_MS = 2 * STATEMENT_TIMEOUT_MS + 500 + SLACK_MS

describe('a dedicated Postgres', () => {
  let postgres: DedicatedPostgres
  let databaseUrl: string
  let proxy: TcpProxy | undefined
  let api: Api
  let load: LoadGenerator | undefined

  beforeAll(async () => {
    postgres = await startDedicatedPostgres()
  })
  beforeEach(async () => {
    databaseUrl = await postgres.createDatabase()
  })
  afterEach(async () => {
    postgres.thaw()
    proxy?.thaw()
    await api.process.kill()
    await load?.stop()
    await proxy?.close()
    proxy = undefined
    load = undefined
  })
  afterAll(() => postgres?.remove())

  const startBehindProxy = async (more: Record<string, string> = {}) => {
    proxy = await startTcpProxy(postgres.port)
    api = await startApi(Object.assign(new URL(databaseUrl), { port: String(proxy.port) }).href, { ...env, ...more })
    return proxy
  }
  const startServing = async (callers = CALLERS): Promise<LoadGenerator> => {
    const started = startLoad(api, callers)
    load = started
    await until('the load runs', () => started.successCount() > 100)
    return started
  }
  const getStatus = async (path: string) => {
    const { result, ms } = await timed(() => api.call('GET', path))
    return { status: result.status, ms }
  }
  /** Both database probes fail in time; the liveness probe succeeds. */
  const expectUnhealthy = async () => {
    // Readiness keeps a result for a second.
    await until('readiness has no earlier result', async () => (await getStatus('/readyz')).status === 503)
    const probes = await Promise.all(['/healthz', '/readyz', '/livez'].map(getStatus))
    expect(probes.map(({ status }) => status)).toEqual([503, 503, 200])
    for (const { ms } of probes) expect(ms).toBeLessThan(SLACK_MS)
  }
  const expectNothingLost = async (stopped: LoadGenerator) => {
    const sql = postgres.connect(databaseUrl)
    const rows = sql<{ subdomain: string; state: string; digest: string }[]>`
      select subdomain, state, encode(token_hash, 'hex') as digest from pool_allocations`
    expect(await lostWrites(stopped, rows)).toEqual([])
    await untilApplied(sql)
    await expectConsistentTables(sql)
  }
  const expectOnlyNormalOutcomes = (stopped: LoadGenerator) => {
    const defects = api.lines.filter(line => line.includes('"request failed"'))
    expect([...unexpectedOutcomes(stopped), ...defects]).toEqual([])
  }
  const seen = (stopped: LoadGenerator) => JSON.stringify(Object.fromEntries(stopped.outcomes))
  const expectRecovered = async (running: LoadGenerator): Promise<number> => {
    const before = running.successCount()
    const { ms } = await timed(() => until('requests succeed again', () => running.successCount() > before))
    await until('the service is ready', async () => (await getStatus('/readyz')).status === 200)
    return Math.round(ms)
  }
  const print = (line: string) => process.stdout.write(`${line}\n`)

  test.each(['fast', 'immediate'] as const)(
    'stopped (%s) and started again under load: 503 during the outage, no acknowledged write is lost, no restart needed',
    async mode => {
      api = await startApi(databaseUrl, env)
      const running = await startServing()
      const acknowledged = running.reserved.size
      await postgres.stop(mode)
      running.resetMaxLatency()
      const rejections = () => running.outcomes.get('reserve 503 database-unavailable') ?? 0
      const before = rejections()
      await until('callers get 503', () => rejections() > before + CALLERS)
      await expectUnhealthy()
      const { result, ms } = await timed(() => reserve(api, 'while-down'))
      expect([result.status, result.body.error]).toEqual([503, 'database-unavailable'])
      expect(ms).toBeLessThan(STATEMENT_TIMEOUT_MS + SLACK_MS)
      const slowest = running.maxLatencyMs()
      expect(slowest).toBeLessThan(MAX_LATENCY_MS)

      await postgres.start()
      const recovery = await expectRecovered(running)
      await until('new names are reserved', () => running.reserved.size > acknowledged + 50)
      await running.stop()
      expectOnlyNormalOutcomes(running)
      await expectNothingLost(running)
      print(
        `Postgres ${mode}: first success ${recovery} ms after the restart, slowest response during the outage ` +
          `${Math.round(slowest)} ms, ${seen(running)}`,
      )
    },
  )

  const memoryMb = () => {
    const status = `/proc/${api.process.pid}/status`
    return existsSync(status) ? Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(status, 'utf8'))?.[1]) / 1_024 : 0
  }

  /** Freezes the database with open connections, checks the responses, and thaws it again. */
  const expectSilenceIsSurvived = async (
    running: LoadGenerator,
    freeze: () => void,
    thaw: () => void,
    what: string,
  ) => {
    const acknowledged = running.reserved.size
    const memoryBefore = memoryMb()
    freeze()
    running.resetMaxLatency()
    const writes = Promise.all([
      timed(() => reserve(api, 'plain')),
      timed(() =>
        Promise.race([
          reserve(api, 'keyed', { 'Idempotency-Key': 'keyed' }),
          until('the keyed request completes', () => undefined, MAX_LATENCY_MS).catch(() => null),
        ]),
      ),
    ])
    await expectUnhealthy()
    const [, many] = await Promise.all([
      expectUnhealthy(),
      Promise.all(Array.from({ length: 10 }, () => getStatus('/healthz'))),
    ])
    for (const { status, ms } of many) {
      expect(status).toBe(503)
      expect(ms).toBeLessThan(SLACK_MS)
    }
    const [plain, keyed] = await writes
    const memoryAfter = memoryMb()
    thaw()
    const recovery = await expectRecovered(running)
    await until('new names are reserved', () => running.reserved.size > acknowledged + 50)
    await running.stop()
    print(
      `${what}: plain ${Math.round(plain.ms)} ms, keyed ${Math.round(keyed.ms)} ms, slowest of the load ` +
        `${Math.round(running.maxLatencyMs())} ms, first success ${recovery} ms after, memory ${Math.round(memoryBefore)} -> ` +
        `${Math.round(memoryAfter)} MB, ${seen(running)}`,
    )
    expect.soft([plain.result.status, plain.result.body.error]).toEqual([503, 'database-unavailable'])
    expect.soft(plain.ms).toBeLessThan(STATEMENT_TIMEOUT_MS + SLACK_MS)
    expect.soft(keyed.result?.status).toBe(503)
    expect.soft(running.maxLatencyMs()).toBeLessThan(MAX_LATENCY_MS)
    expect.soft(memoryAfter - memoryBefore).toBeLessThan(150)
    expectOnlyNormalOutcomes(running)
    await expectNothingLost(running)
  }

  test.skipIf(shouldSkip(missingProcFiles))(
    'frozen (SIGSTOP) under load: /healthz fails, callers get 503 within the timeout, nothing is lost',
    async () => {
      api = await startApi(databaseUrl, env)
      const running = await startServing()
      await expectSilenceIsSurvived(running, postgres.freeze, postgres.thaw, 'SIGSTOP')
    },
  )

  test('behind a network that goes silent and recovers: the same', async () => {
    const between = await startBehindProxy()
    const running = await startServing()
    await expectSilenceIsSurvived(running, between.freeze, between.thaw, 'silent network')
  })

  test('connections that stay silent are closed and replaced without a restart', async () => {
    const between = await startBehindProxy({ PDM_DATABASE_POOL_SIZE: '4' })
    const running = await startServing()
    between.abandon()
    const recovery = await expectRecovered(running)
    const rejections = () =>
      [...running.outcomes].reduce((sum, [what, n]) => (what.includes(' 503 ') ? sum + n : sum), 0)
    const { ms } = await timed(() =>
      until('no request gets 503 any more', async () => {
        const [good, bad] = [running.successCount(), rejections()]
        await until('requests succeed', () => running.successCount() > good + 100)
        return rejections() === bad
      }),
    )
    await running.stop()
    expectOnlyNormalOutcomes(running)
    await expectNothingLost(running)
    print(
      `silent for good: first success after ${recovery} ms, no refusals ${Math.round(ms)} ms later, ${seen(running)}`,
    )
  })

  test(`${CUTS} cuts of half the connections under load: only 503s, no acknowledged write is lost, no write is doubled`, async () => {
    const between = await startBehindProxy()
    const running = await startServing()
    for (let cut = 0; cut < CUTS; cut += 1) {
      const before = running.successCount()
      // Half of the connections, in the middle of their statements.
      for (let i = between.count(); i > 0; i -= 2) between.resetOne()
      await until('requests succeed', () => running.successCount() > before + 3)
    }
    await running.stop()
    expectOnlyNormalOutcomes(running)
    await expectNothingLost(running)
    print(`${CUTS} cuts of half the connections: ${seen(running)}`)
  })

  test('a request whose response was lost has one outcome when it is repeated with its Idempotency-Key', async () => {
    // A request without an outcome gets its 503 after this time.
    const between = await startBehindProxy({ PDM_DATABASE_TIMEOUT: '8s', PDM_DNS_COMMIT_WAIT: '1m' })
    const sql = postgres.connect(databaseUrl)
    for (let round = 0; round < 10; round += 1) {
      const name = `retry-${round}`
      const headers = { 'Idempotency-Key': `reserve-${name}` }
      const lost = reserve(api, name, headers)
      for (let i = 0; i <= round; i += 1) await new Promise(setImmediate)
      for (let i = between.count(); i > 0; i -= 1) between.resetOne()
      await lost
      const answer = await until('the request succeeds', async () => {
        const again = await reserve(api, name, headers)
        return again.status !== 503 && again
      })
      expect(answer.status).toBe(201)
      const rows = await sql`select encode(token_hash, 'hex') as digest from pool_allocations where subdomain = ${name}`
      expect(rows).toEqual([{ digest: tokenDigest(answer.body.reservationToken) }])
      expect(await sql`select event from allocation_history where subdomain = ${name}`).toEqual([{ event: 'reserved' }])
    }
    const token = await reserveToken(api, 'after')
    expect((await commit(api, 'after', token)).status).toBe(200)
    expect((await release(api, 'after')).status).toBe(200)
  })
})

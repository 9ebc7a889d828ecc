import { type DedicatedPostgres, startDedicatedPostgres } from '@pool/test-kit/dedicated-postgres.ts'
import { timed, until } from '@pool/test-kit/poll.ts'
import { type Api, startApi } from '@pool/test-kit/services.ts'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { expectConsistentTables, untilApplied } from '../support/consistency.ts'
import { commit, release, reserve, reserveToken } from '../support/operations.ts'
import { tokenDigest } from '../support/token-repository.ts'

/** PDM_DATABASE_TIMEOUT. */
const STATEMENT_TIMEOUT_MS = 1_000
/** For a busy machine. A request that waited for the database would wait for as long as the outage lasts. */
const SLACK_MS = 10_000
const env = { PDM_DATABASE_TIMEOUT: `${STATEMENT_TIMEOUT_MS}ms`, PDM_DNS_COMMIT_WAIT: '500ms' }
/** A commit takes two statements and the wait for its records. */
const MAX_LATENCY_MS = 2 * STATEMENT_TIMEOUT_MS + 500 + SLACK_MS

describe('a dedicated Postgres', () => {
  let postgres: DedicatedPostgres
  let databaseUrl: string
  let proxy: TcpProxy | undefined
  let api: Api

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
    await proxy?.close()
    proxy = undefined
  })
  afterAll(() => postgres?.remove())

  const startBehindProxy = async (more: Record<string, string> = {}) => {
    proxy = await startTcpProxy(postgres.port)
    api = await startApi(Object.assign(new URL(databaseUrl), { port: String(proxy.port) }).href, { ...env, ...more })
    return proxy
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
  const expectServing = async (name: string) => {
    await until('the service is ready', async () => (await getStatus('/readyz')).status === 200)
    await until('a name is reserved', async () => (await reserve(api, name)).status === 201)
    expect(api.lines.filter(line => line.includes('"request failed"'))).toEqual([])
  }

  test.each<[what: string, start: () => Promise<unknown>, end: () => Promise<unknown> | undefined]>([
    ['stopped', () => postgres.stop('fast'), () => postgres.start()],
    ['killed', () => postgres.stop('immediate'), () => postgres.start()],
    ['frozen', async () => postgres.freeze(), async () => postgres.thaw()],
    ['behind a silent network', async () => proxy?.freeze(), async () => proxy?.thaw()],
  ])(
    '%s: 503 within the timeout, the probes say so, nothing is lost, and no restart is needed',
    async (_, start, end) => {
      await startBehindProxy()
      const token = await reserveToken(api, 'before')
      await start()
      const writes = await Promise.all([
        timed(() => reserve(api, 'plain')),
        timed(() => reserve(api, 'keyed', { 'Idempotency-Key': 'keyed' })),
        timed(() => commit(api, 'before', token)),
      ])
      for (const { result, ms } of writes) {
        expect([result.status, result.body.error]).toEqual([503, 'database-unavailable'])
        expect(ms).toBeLessThan(MAX_LATENCY_MS)
      }
      const { body: read } = await api.call('GET', '/api/v1/pool/pool.test/check?sub=plain')
      expect(read).toMatchObject({ detail: expect.stringContaining('A read changes nothing') })
      await expectUnhealthy()
      await end()
      await expectServing('after')
      expect((await commit(api, 'before', token)).status).toBeLessThan(300)
      const sql = postgres.connect(databaseUrl)
      await untilApplied(sql)
      await expectConsistentTables(sql)
      expect(await sql`select subdomain from pool_allocations order by 1`).toEqual([
        { subdomain: 'after' },
        { subdomain: 'before' },
      ])
    },
  )

  test('connections that stay silent are closed and replaced without a restart', async () => {
    const between = await startBehindProxy({ PDM_DATABASE_POOL_SIZE: '4' })
    await reserveToken(api, 'before')
    between.abandon()
    await expectServing('after')
  })

  test('a request whose response was lost has one outcome when it is repeated with its Idempotency-Key', async () => {
    // A request without an outcome gets its 503 after this time.
    const between = await startBehindProxy({ PDM_DATABASE_TIMEOUT: '2s', PDM_DNS_COMMIT_WAIT: '1m' })
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

import { until } from '@pool/test-kit/poll.ts'
import { type Api, startApi } from '@pool/test-kit/services.ts'
import { startTcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { expect, test } from 'vitest'
import { createTestDatabase, getTestDsn } from '../support/database.ts'
import { testWithDynadot } from '../support/dynadot-fixture.ts'
import { commit, reserve, reserveToken } from '../support/operations.ts'

interface LogLine {
  readonly level: string
  readonly msg: string
  readonly [field: string]: unknown
}

const readLines = (api: Api): LogLine[] => api.lines.map(line => JSON.parse(line))
const findLines = (api: Api, msg: string): LogLine[] => readLines(api).filter(line => line.msg === msg)
/** The first line with this message. */
const untilLogged = (api: Api, msg: string) => until(`log line: ${msg}`, () => findLines(api, msg)[0])

test('an outage of the database is one line at its start and one at its end', async () => {
  const database = await createTestDatabase({ connections: 1 })
  const proxy = await startTcpProxy(Number(new URL(getTestDsn()).port || 5432))
  const url = Object.assign(new URL(database.url), { hostname: '127.0.0.1', port: String(proxy.port) }).href
  const api = await startApi(url, { PDM_TERRAFORM_BINARY: '/nowhere/terraform' })
  const scrape = () => api.call('GET', '/metrics')
  // Logged when the checks at the start end: their lines are not those of the outage.
  await untilLogged(api, 'deployments unavailable')
  const beforeOutage = api.lines.length
  proxy.refuse(true)
  await untilLogged(api, 'database unavailable')
  // Each scrape has several sources that fail, and so do the jobs that repeat every second.
  for (let i = 0; i < 5; i += 1) await scrape()
  expect((await reserve(api, 'meanwhile')).status).toBe(503)
  proxy.refuse(false)
  const end = await untilLogged(api, 'database available again')
  expect((await reserve(api, 'afterwards')).status).toBe(201)
  await api.process.stop()

  const lines: LogLine[] = api.lines.slice(beforeOutage).map(line => JSON.parse(line))
  const problems = lines.filter(({ level }) => level === 'error' || level === 'warn')
  expect(problems.map(({ msg }) => msg)).toEqual(['database unavailable'])
  expect(problems[0]).toMatchObject({ level: 'error', event: expect.any(String), error: { code: expect.any(String) } })
  expect(JSON.stringify(problems)).not.toContain('stack')
  expect(end).toMatchObject({ level: 'info', seconds: expect.any(Number), failures: expect.any(Number) })
  expect(Number(end.failures)).toBeGreaterThanOrEqual(5)
  expect(lines.filter(({ msg }) => msg === 'database available again')).toHaveLength(1)
  await proxy.close()
  await database.drop()
})

testWithDynadot(
  'the circuit of the provider is one line when it opens and one when it closes',
  {},
  async ({ api, double }) => {
    const token = await reserveToken(api, 'acme')
    await double.stop()
    expect((await commit(api, 'acme', token)).status).toBe(202)
    const opened = await untilLogged(api, 'dns provider circuit opened')
    expect(opened).toMatchObject({ level: 'warn', zones: 1, reason: expect.stringMatching(/ECONNREFUSED|reach/) })
    expect((await api.call('GET', '/metrics')).text).toMatch(/^pdm_dns_circuit_open 1$/m)
    await double.start()
    const closed = await untilLogged(api, 'dns provider circuit closed')
    expect(closed).toMatchObject({ level: 'info', openSeconds: expect.any(Number) })
    expect((await api.call('GET', '/metrics')).text).toMatch(/^pdm_dns_circuit_open 0$/m)
    expect(readLines(api).filter(({ msg }) => msg.startsWith('dns provider circuit'))).toHaveLength(2)
  },
)

test('probes are logged at level debug only', async () => {
  const database = await createTestDatabase({ connections: 1 })
  const probes = ['/livez', '/readyz', '/healthz', '/metrics']
  const logRoutes = async (level: string) => {
    const api = await startApi(database.url, { PDM_LOG_LEVEL: level })
    for (const path of [...probes, '/api/v1/reserved']) await api.call('GET', path)
    await untilLogged(api, 'request')
    await api.process.stop()
    return findLines(api, 'request').map(line => `${line.level} ${line.route}`)
  }
  expect(await logRoutes('info')).toEqual(['info /api/v1/reserved'])
  expect(await logRoutes('debug')).toEqual([...probes.map(path => `debug ${path}`), 'info /api/v1/reserved'])
  await database.drop()
})

test('a client with Idempotency-Keys of fewer than 16 characters is one line, without the keys', async () => {
  const database = await createTestDatabase({ connections: 1 })
  const api = await startApi(database.url, { PDM_TRUSTED_PROXIES: '127.0.0.0/8, ::1' })
  const send = (path: string, key: string, client: string, body: object) =>
    api.call('POST', path, body, { 'Idempotency-Key': key, 'X-Forwarded-For': client })
  const reservePath = '/api/v1/pool/pool.test/reserve'
  for (const key of ['guessable-key-1', 'guessable-key-2']) {
    await send(reservePath, key, '192.0.2.1', { subdomain: 'one' })
    await send('/api/v1/pool/pool.test/commit', key, '192.0.2.2', {})
  }
  await send(reservePath, 'sixteen-letters-', '192.0.2.3', { subdomain: 'two' })
  await until('both are logged', () => findLines(api, 'short Idempotency-Key').length >= 2)
  await api.process.stop()
  const lines = findLines(api, 'short Idempotency-Key')
  expect(lines.map(({ level, address }) => [level, address])).toEqual([
    ['warn', '192.0.2.1'],
    ['warn', '192.0.2.2'],
  ])
  expect(api.lines.join()).not.toContain('guessable')
  await database.drop()
})

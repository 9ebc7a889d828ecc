import { until } from '@pool/test-kit/poll.ts'
import { sendRequest, startApi } from '@pool/test-kit/services.ts'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'

const token = { Authorization: 'Bearer token-of-these-tests' }
let database: TestDatabase
let proxy: TcpProxy

beforeAll(async () => {
  database = await createTestDatabase({ schema: false, connections: 1 })
  proxy = await startTcpProxy(Number(new URL(database.url).port))
})
afterEach(() => {
  proxy.refuse(false)
  proxy.thaw()
})
afterAll(async () => {
  await proxy.close()
  await database.drop()
})

/** The timers of a process run ten times as fast. */
const fastClock = { NODE_OPTIONS: `--import ${new URL('../support/fast-clock.ts', import.meta.url)}` }

/** Starts a process whose database refuses connections. Resolves when it listens. */
const startWithoutDatabase = async () => {
  proxy.refuse(true)
  return startProcess()
}

const startProcess = async (env: Record<string, string> = {}) => {
  const url = Object.assign(new URL(database.url), { port: String(proxy.port) }).href
  // A bundle has a console, and the sources have none.
  const settings = JSON.stringify({ consoleFolder: '/nowhere' })
  const variables = { PDM_OPERATOR_TOKENS: 'token-of-these-tests', PDM_TEST_SETTINGS: settings, ...env }
  const api = await startApi(url, variables, { isReady: line => line.msg === 'listening' })
  const waits = () => api.lines.filter(line => line.includes('waiting for database'))
  return { child: api.process, waits, url: api.url, operatorUrl: api.operatorUrl ?? '' }
}

test('without a database: alive, not ready, and every other route is 503 without an effect', async () => {
  const { child, url, operatorUrl, waits } = await startWithoutDatabase()
  await until('it waits', () => waits().length > 0)
  expect((await sendRequest(`${url}/livez`, 'GET')).status).toBe(200)
  const ready = await sendRequest(`${url}/readyz`, 'GET')
  expect([ready.status, ready.body]).toEqual([503, { status: 'starting' }])
  // Whether a session is valid is unknown, so a browser is not signed out.
  const session = { Cookie: `pool-session=${'A'.repeat(43)}`, Origin: operatorUrl }
  for (const [method, path] of [
    ['GET', '/api/v1/session'],
    ['GET', '/metrics'],
    ['POST', '/api/v1/session'],
  ] as const) {
    const response = await sendRequest(
      operatorUrl + path,
      method,
      method === 'POST' ? { token: 'token' } : undefined,
      session,
    )
    expect([response.status, response.body.error], path).toEqual([503, 'database-unavailable'])
  }
  expect((await sendRequest(`${operatorUrl}/metrics`, 'GET')).status).toBe(401)
  // A tool of a tenant would exit at a 401.
  expect((await sendRequest(`${operatorUrl}/api/v1/records/external-dns`, 'GET')).status).toBe(503)
  expect((await sendRequest(`${operatorUrl}/console`, 'GET')).status).toBe(404)
  const healthy = await sendRequest(`${url}/healthz`, 'GET')
  expect([healthy.status, healthy.body]).toEqual([503, { status: 'unhealthy', managedDomains: ['pool.test'] }])
  expect((await sendRequest(`${url}/metrics`, 'GET')).text).toContain('pdm_build_info')
  const reserved = await sendRequest(`${url}/api/v1/pool/pool.test/reserve`, 'POST', { subdomain: 'early' })
  expect([reserved.status, reserved.body.error]).toEqual([503, 'database-unavailable'])
  expect(reserved.headers.get('retry-after')).toBe('5')
  expect((await sendRequest(`${operatorUrl}/readyz`, 'GET')).status).toBe(401)
  expect((await sendRequest(`${operatorUrl}/readyz`, 'GET', undefined, token)).status).toBe(503)
  expect(await child.stop()).toEqual({ code: 0, signal: null })
})

test('each step of the wait is one line without a stack, and the service is ready soon after the database', async () => {
  const { child, url, waits } = await startWithoutDatabase()
  await until('it waits', () => waits().length >= 3)
  for (const line of waits()) {
    expect(Object.keys(JSON.parse(line)).sort()).toEqual(['level', 'msg', 'reason', 'service', 'time', 'waitedSeconds'])
  }
  expect(waits()[0]).toMatch(/the database cannot be reached; .* \((?:ECONNRESET|CONNECTION_CLOSED)\)/)
  proxy.refuse(false)
  const isReady = async () => (await sendRequest(`${url}/readyz`, 'GET')).status === 200
  await until('it is ready', isReady)
  expect((await sendRequest(`${url}/api/v1/pool/pool.test/reserve`, 'POST', { subdomain: 'late' })).status).toBe(201)
  expect(await child.stop()).toEqual({ code: 0, signal: null })
})

test('a database that accepts connections and does not respond is waited for, too', async () => {
  proxy.freeze()
  const { child, url, waits } = await startProcess(fastClock)
  await until('it waits', () => waits().length > 0)
  expect(waits()[0]).toMatch(/the database cannot be reached; .* \((?:no response|CONNECT_TIMEOUT|ETIMEDOUT)\)/)
  expect((await sendRequest(`${url}/livez`, 'GET')).status).toBe(200)
  proxy.thaw()
  await until('it is ready', async () => (await sendRequest(`${url}/readyz`, 'GET')).status === 200)
  expect(await child.stop()).toEqual({ code: 0, signal: null })
})

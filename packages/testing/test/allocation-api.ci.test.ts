import { Resolver } from 'node:dns/promises'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import * as z from 'zod'
import { startAllocationApi, type TestAllocationApi } from '../src/index.ts'

let api: TestAllocationApi
const resolver = new Resolver()
beforeAll(async () => {
  // The start must not depend on a line of the log: at this level there is none.
  api = await startAllocationApi({ env: { PDM_SWEEPER_INTERVAL: '1h', PDM_LOG_LEVEL: 'fatal' } })
  resolver.setServers([api.dnsServer])
})
afterAll(() => api?.stop())

const reply = z.looseObject({ reservationToken: z.string().default(''), reservedAt: z.string().default('') })

const send = async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
  const response = await fetch(`${api.url}/api/v1${path}`, {
    method,
    headers,
    ...(body ? { body: JSON.stringify(body) } : {}),
  })
  return { status: response.status, body: reply.parse(await response.json()) }
}
const reserve = (subdomain: string, headers: Record<string, string> = {}) =>
  send('POST', '/pool/pool.test/reserve', { subdomain }, headers)
const commit = (subdomain: string, reservationToken: string) =>
  send('POST', '/pool/pool.test/commit', {
    subdomain,
    reservationToken,
    loadBalancerIP: '203.0.113.10',
    sovereignFQDN: `${subdomain}.pool.test`,
  })

test('a committed name is published at the DNS server', async () => {
  const { body } = await reserve('acme')
  expect(await commit('acme', body.reservationToken)).toMatchObject({ status: 200 })
  expect(await resolver.resolve4('acme.pool.test')).toEqual(['203.0.113.10'])
})

test('a reservation expires when the clock has moved, and times of the API are those of the clock', async () => {
  const { status, body } = await reserve('late')
  expect(status).toBe(201)
  await api.clock.advance(10 * 60_000)
  expect(await commit('late', body.reservationToken)).toMatchObject({ status: 410 })
  const { body: second } = await reserve('late')
  expect(Date.parse(second.reservedAt) - Date.parse(body.reservedAt)).toBeGreaterThanOrEqual(10 * 60_000)
  expect(Date.parse(second.reservedAt)).toBeLessThanOrEqual((await api.clock.now()).getTime())
})

test('an Idempotency-Key expires with the clock', async () => {
  const key = { 'Idempotency-Key': 'one-key' }
  const first = await reserve('idempotent', key)
  expect(await reserve('idempotent', key)).toEqual(first)
  await api.clock.advance(8 * 86_400_000)
  expect((await reserve('idempotent', key)).body.reservationToken).not.toBe(first.body.reservationToken)
})

test('requests before, during and after a move of the clock succeed', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `during-${index}`)
  const before = names.map(name => reserve(name))
  const move = api.clock.advance(60_000)
  const after = names.map(name => reserve(`${name}-again`))
  const results = await Promise.all([...before, ...after])
  await move
  expect(new Set(results.map(({ status }) => status))).toEqual(new Set([201]))
})

test('the clock does not go back', async () => {
  await expect(api.clock.advance(-1)).rejects.toThrow('does not go back')
})

test.each([-1, 1e18, 6e12, Number.NaN])('no move of the clock by %d ms', async ms => {
  await expect(api.clock.advance(ms)).rejects.toThrow(RangeError)
  expect((await reserve(`after-${Math.random().toString(36).slice(2)}`)).status).toBe(201)
})

test('it works at the end of the clock', async () => {
  await using other = await startAllocationApi({ env: { PDM_NAME_COOL_OFF: '24h' } })
  await other.clock.advance(Date.UTC(2199, 11, 31) - (await other.clock.now()).getTime())
  const pool = `${other.url}/api/v1/pool/pool.test`
  const post = (action: string, body: object) =>
    fetch(`${pool}/${action}`, { method: 'POST', body: JSON.stringify(body) })
  const response = await post('reserve', { subdomain: 'late' })
  expect(response.status).toBe(201)
  const { reservationToken } = reply.parse(await response.json())
  const names = { subdomain: 'late', reservationToken, sovereignFQDN: 'late.pool.test' }
  expect((await post('commit', { ...names, loadBalancerIP: '203.0.113.10' })).status).toBe(200)
})

test('the API is killed after a write, and restarts at the same addresses with its data', async () => {
  const fault = await api.killAfterWrite({ method: 'POST' })
  await expect(reserve('killed')).rejects.toThrow('fetch failed')
  await fault.occurred()
  expect(await reserve('killed')).toMatchObject({ status: 409 })
  const { body } = await reserve('published-later')
  expect((await commit('published-later', body.reservationToken)).status).toBe(200)
  expect(await resolver.resolve4('published-later.pool.test')).toEqual(['203.0.113.10'])
})

test("the operator's listener accepts the token, and faults apply to it", async () => {
  const list = () =>
    fetch(`${api.operatorUrl}/api/v1/pool/pool.test/list`, {
      headers: { Authorization: `Bearer ${api.operatorToken}` },
    })
  expect((await list()).status).toBe(200)
  const fault = await api.dropNextResponse({ path: '/api/v1/pool/pool.test/list' })
  await expect(list()).rejects.toThrow('fetch failed')
  await fault.occurred()
})

test('a new API knows no pool of the one that was started first on this machine', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'templates-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  vi.stubEnv('POOL_TESTING_CACHE', folder)
  onTestFinished(() => void vi.unstubAllEnvs())
  for (const pool of ['first.test', 'second.test']) {
    await using other = await startAllocationApi({ pools: [pool] })
    const headers = { Authorization: `Bearer ${other.operatorToken}` }
    const response = await fetch(`${other.operatorUrl}/api/v1/zones`, { headers })
    const { zones } = z.object({ zones: z.array(z.looseObject({ zone: z.string() })) }).parse(await response.json())
    expect(zones.map(({ zone }) => zone)).toEqual([pool])
  }
})

test('settings that would have no effect: the error names them', async () => {
  const env = { PDM_RESERVATON_TTL: '1m', DNSPROVIDER_MANAGED_DOMAINS: 'a.test' }
  const started = startAllocationApi({ env })
  await expect(started).rejects.toThrow(/use the option pools; .*did you mean PDM_RESERVATION_TTL\?/)
})

test('settings that the API does not accept: the error quotes them', async () => {
  await expect(startAllocationApi({ env: { PDM_SWEEPER_INTERVAL: 'often', PDM_LOG_LEVEL: 'fatal' } })).rejects.toThrow(
    'PDM_SWEEPER_INTERVAL',
  )
})

import { deploymentRequest } from '@pool/test-kit/deployment-request.ts'
import { until } from '@pool/test-kit/poll.ts'
import { type Api, runUntilExit, startApi, toApiEntry } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { type ContractCall, createContractCall } from '../support/service.ts'

const MINUTE_MS = 60_000
const token = 'operator-token-of-tests'
const bearer = { Authorization: `Bearer ${token}` }
const pathOf = (pool: string) => `/api/v1/pool/${pool}`

let database: TestDatabase
const running: Api[] = []
const start = async (pools: string): Promise<Api> => {
  const api = await startApi(database.url, {
    DNSPROVIDER_MANAGED_DOMAINS: pools,
    DNSPROVIDER_RECORD_NAMES: '@,*',
    PDM_DRIFT_INTERVAL: '1s',
    PDM_OPERATOR_TOKENS: token,
    PDM_TERRAFORM_BINARY: '/nowhere/terraform',
  })
  running.push(api)
  return api
}
beforeAll(async () => {
  database = await createTestDatabase({ connections: 2 })
})
afterAll(async () => {
  for (const api of running) await api.process.stop()
  await database.drop()
})

/** The line and the exit code of a start that fails. */
const failToStart = async (pools: string, env: Record<string, string> = {}) => {
  const { code, lines } = await runUntilExit({
    entry: toApiEntry(),
    env: { PORT: '0', PDM_DATABASE_URL: database.url, DNSPROVIDER_MANAGED_DOMAINS: pools, ...env },
  })
  return { code, lines: lines.filter(line => !line.startsWith('{')) }
}

const reserve = async (call: ContractCall, pool: string, subdomain: string) =>
  call('POST', `${pathOf(pool)}/reserve`, { subdomain })
const commitBody = (pool: string, subdomain: string, reservationToken: string) => ({
  subdomain,
  reservationToken,
  sovereignFQDN: `${subdomain}.${pool}`,
  loadBalancerIP: '203.0.113.10',
})

describe('a pool that leaves the list (edge.test)', () => {
  const edge = pathOf('edge.test')
  let api: Api
  let call: ContractCall
  let operator: ContractCall
  const tokens: Record<string, string> = {}

  beforeAll(async () => {
    const before = await start('pool.test,edge.test')
    const callBefore = createContractCall(before.url)
    for (const subdomain of ['active', 'reserved', 'renewed']) {
      const { body } = await reserve(callBefore, 'edge.test', subdomain)
      tokens[subdomain] = body.reservationToken
    }
    const commit = commitBody('edge.test', 'active', tokens.active ?? '')
    expect((await callBefore('POST', `${edge}/commit`, commit)).status).toBe(200)
    await before.process.stop()
    api = await start('pool.test')
    call = createContractCall(api.url)
    const callOperator = createContractCall(api.operatorUrl ?? '')
    operator = (method, path, body, headers) => callOperator(method, path, body, { ...bearer, ...headers })
  })

  test('healthz, the ready line and the metrics report it', async () => {
    const { status, body } = await call('GET', '/healthz')
    expect([status, body]).toEqual([
      200,
      { status: 'ok', managedDomains: ['pool.test'], drainingDomains: ['edge.test'] },
    ])
    expect((await call('GET', '/metrics')).text).toMatch(/^pdm_pool_draining\{pool="edge\.test"\} 1$/m)
  })

  test('a name in it cannot be reserved', async () => {
    const { status, body } = await reserve(call, 'edge.test', 'new')
    expect([status, body.error]).toEqual([422, 'pool-draining'])
    expect(body.detail).toContain('pool.test')
    expect((await reserve(call, 'edge.test', '-')).body.error, 'the format is decided first').toBe('invalid-format')
    expect((await reserve(call, 'edge.test', 'www')).body.error, 'before the label').toBe('pool-draining')
  })

  test.each(['new', 'active', 'reserved', 'www'])('check says so before the state of %s', async sub => {
    const { body } = await call('GET', `${edge}/check?sub=${sub}`)
    expect(body).toMatchObject({ available: false, reason: 'pool-draining', fqdn: `${sub}.edge.test` })
    expect((await call('GET', `${edge}/check?sub=-`)).body.reason).toBe('invalid-format')
  })

  test('a deployment cannot get a name in it, and cannot bring one', async () => {
    const inPool = { ...deploymentRequest('new'), sovereignPoolDomain: 'edge.test' }
    expect((await call('POST', '/api/v1/deployments', inPool)).body).toMatchObject({ field: 'sovereignPoolDomain' })
    const own = { ...deploymentRequest('new'), sovereignDomainMode: 'byo', sovereignFQDN: 'own.edge.test' }
    expect((await call('POST', '/api/v1/deployments', own)).body).toMatchObject({ field: 'sovereignFQDN' })
  })

  test('every other operation works', async () => {
    expect((await call('GET', `${edge}/list`)).body.allocations).toHaveLength(3)
    expect((await call('GET', `${edge}/history`)).status).toBe(200)
    expect((await call('GET', `${edge}/allocations/active`)).body.dns).toEqual({ status: 'published' })
    const renew = { subdomain: 'renewed', reservationToken: tokens.renewed }
    expect((await call('POST', `${edge}/renew`, renew)).status).toBe(200)
    const commit = commitBody('edge.test', 'reserved', tokens.reserved ?? '')
    expect((await call('POST', `${edge}/commit`, commit)).status).toBe(200)
    expect((await operator('POST', `${edge}/converge?dryRun=true`)).body).toMatchObject({ changeCount: 0 })
    expect((await operator('POST', `${edge}/converge`)).status).toBe(200)
    for (const subdomain of ['active', 'reserved', 'renewed']) {
      expect((await call('DELETE', `${edge}/release?sub=${subdomain}`)).status, subdomain).toBe(200)
    }
  })

  test('without names and records it is gone: its zone, its metrics and its operations', async () => {
    // A withdrawn row stays until a write that timed out can no longer take effect, and a registration for ten minutes.
    await until('nothing of the pool is tracked', async () => {
      await database.advance(11 * MINUTE_MS)
      const rows = await database.sql`
        select from dns_zones where zone = 'edge.test' union all select from dns_names where zone = 'edge.test'`
      return rows.length === 0
    })
    await until('the process has noticed', async () => !('drainingDomains' in (await call('GET', '/healthz')).body))
    const gauges = /^pdm_(?:allocations|pool_\w+|dns_(?:oldest|failing|last)\w*)\{[^}]*edge\.test/m
    expect((await call('GET', '/metrics')).text).not.toMatch(gauges)
    expect((await call('GET', `${edge}/list`)).body.error).toBe('unsupported-pool')
    expect((await reserve(call, 'edge.test', 'new')).body.error).toBe('unsupported-pool')
    expect(api.lines.filter(line => line.includes('pool refresh failed'))).toEqual([])
  })
})

test('a pool below a granted name: exit code 2 and one line that names it', async () => {
  const api = await start('pool.test')
  const call = createContractCall(api.url)
  await reserve(call, 'pool.test', 'tenant')
  const pool = 'billing.tenant.pool.test'
  const reason = `lists ${pool}, but tenant.pool.test is granted, and its holder would control that pool; release the name first`
  expect(await failToStart(`pool.test,${pool}`)).toEqual({
    code: 2,
    lines: [`configuration: DNSPROVIDER_MANAGED_DOMAINS ${reason}`],
  })
  expect((await failToStart('', { DNSPROVIDER_DOMAIN: pool })).lines).toEqual([
    `configuration: DNSPROVIDER_DOMAIN ${reason}`,
  ])
  // The refused start has left nothing.
  expect((await call('GET', '/healthz')).body).toEqual({ status: 'ok', managedDomains: ['pool.test'] })
})

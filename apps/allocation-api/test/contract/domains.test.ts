import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deploymentRequest } from '@pool/test-kit/deployment-request.ts'
import { afterAll, describe, expect, test } from 'vitest'
import { createZoneTable } from '../../src/dns/providers/local/provider.ts'
import { createContractCall, startTestService } from '../support/service.ts'
import { isTerraformMissing } from '../terraform/support/terraform.ts'

const folder = mkdtempSync(join(tmpdir(), 'domains-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const { call, database, api } = await startTestService({
  PDM_BYO_PROOF: 'required',
  PDM_BYO_RESOLVERS: '127.0.0.1:9',
  PDM_OPERATOR_TOKENS: 'token-of-these-tests',
})
const path = '/api/v1/domains/challenge'

describe('a challenge', () => {
  test('201 has the record, which differs for each request', async () => {
    const first = await call('POST', path, { domain: ' Cloud.Acme.Example. ' })
    expect(first.status).toBe(201)
    expect(first.body).toEqual({
      domain: 'cloud.acme.example',
      name: '_pool-challenge.cloud.acme.example',
      type: 'TXT',
      value: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      expiresAt: expect.any(String),
    })
    const second = await call('POST', path, { domain: 'cloud.acme.example' })
    expect(second.body.value).not.toBe(first.body.value)
  })

  test('a repeated Idempotency-Key returns the same record', async () => {
    const send = () => call('POST', path, { domain: 'cloud.acme.example' }, { 'Idempotency-Key': 'a-key' })
    expect((await send()).body.value).toBe((await send()).body.value)
  })

  test.each([
    ['no domain', {}],
    ['not text', { domain: 5 }],
    ['not an object', []],
    ['an IDN as U-labels', { domain: 'bücher.example' }],
    ['no room for the label of the record', { domain: `${'a.'.repeat(117)}test` }],
  ])('422 for %s', async (_, body) => {
    expect(await call('POST', path, body)).toMatchObject({ status: 422, body: { error: 'invalid-fqdn' } })
  })

  test('an IDN as A-labels is a domain, and so is a name of 237 characters', async () => {
    expect((await call('POST', path, { domain: 'xn--bcher-kva.example' })).status).toBe(201)
    const longest = `${'a.'.repeat(116)}tests`
    expect(longest).toHaveLength(237)
    expect((await call('POST', path, { domain: longest })).body.name).toHaveLength(253)
  })
})

describe('the check of a domain', () => {
  const operator = createContractCall(api.operatorUrl ?? '')
  const check = (body: unknown) =>
    operator('POST', '/api/v1/domains/check', body, { Authorization: 'Bearer token-of-these-tests' })

  test('200 has whether the domain is available, and what is unknown of its proof', async () => {
    expect(await check({ domain: 'Cloud.Acme.Example.' })).toMatchObject({
      status: 200,
      body: {
        domain: 'cloud.acme.example',
        available: true,
        proof: 'unknown',
        proofDetail: expect.stringContaining('_pool-challenge.cloud.acme.example'),
      },
    })
  })

  test('200 has the pool that contains the domain', async () => {
    expect((await check({ domain: 'acme.pool.test' })).body).toMatchObject({ available: false, reason: 'in-pool' })
  })
})

test.skipIf(isTerraformMissing)('a resolver that does not respond is 503 with Retry-After', async () => {
  const request = { ...deploymentRequest('x'), sovereignDomainMode: 'byo', sovereignFQDN: 'cloud.acme.example' }
  const answer = await call('POST', '/api/v1/deployments', request)
  expect(answer).toMatchObject({ status: 503, body: { error: 'dns-unavailable' } })
  expect(answer.headers.get('retry-after')).toBe('5')
})

test.skipIf(isTerraformMissing)('with the record in DNS the deployment is created', async () => {
  const dns = await startTestService({ DNSPROVIDER_MANAGED_DOMAINS: 'example' })
  const other = await startTestService({
    PDM_BYO_PROOF: 'required',
    PDM_BYO_RESOLVERS: `127.0.0.1:${dns.api.dnsPort}`,
    PDM_DEPLOYMENTS_DIR: folder,
  })
  const domain = 'cloud.acme.example'
  const request = { ...deploymentRequest('x'), sovereignDomainMode: 'byo', sovereignFQDN: domain }
  const create = () => other.call('POST', '/api/v1/deployments', request)
  expect(await create()).toMatchObject({
    status: 409,
    body: { error: 'domain-not-proven', detail: expect.stringContaining('_pool-challenge.cloud.acme.example') },
  })
  const { name, type, value } = (await other.call('POST', path, { domain })).body
  const table = createZoneTable(dns.database.sql)
  const { serial } = await table.read('example', [])
  const set = { name, type, ttl: 60, values: [`"${value}"`] }
  expect(await table.apply('example', [{ kind: 'upsert', set }], serial)).not.toBeNull()
  const created = await create()
  expect(created.status).toBe(201)
  const { id, deploymentToken } = created.body
  const removed = await other.call('DELETE', `/api/v1/deployments/${id}`, undefined, {
    'X-Deployment-Token': deploymentToken,
  })
  expect(removed.status).toBe(202)
})

test('a client that requests too many challenges is 429 with Retry-After, and nothing more is stored', async () => {
  let answer = await call('POST', path, { domain: 'acme.example' })
  for (let n = 0; n < 100 && answer.status === 201; n += 1)
    answer = await call('POST', path, { domain: 'acme.example' })
  expect(answer).toMatchObject({
    status: 429,
    body: { error: 'too-many-attempts', detail: 'Too many challenges from your address; retry later.' },
  })
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  const [row] = await database.sql<{ count: number }[]>`select count(*) from domain_challenges`
  expect(row?.count).toBeLessThan(100)
})

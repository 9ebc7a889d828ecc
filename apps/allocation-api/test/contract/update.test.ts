import { describe, expect, test } from 'vitest'
import {
  createContractCall,
  createSteps,
  DEFAULT_RESERVATION_TTL_MS,
  poolPath,
  startTestService,
  unknownToken,
} from '../support/service.ts'

const { api, call, database } = await startTestService({ PDM_OPERATOR_TOKENS: 'operator-token-of-tests' })
const { commitBody, reserveName, reserveAndCommit } = createSteps(call)
const callOperator = createContractCall(api.operatorUrl ?? '')

const ADDRESS = '198.51.100.7'
const update = (body: object, headers?: Record<string, string>) => call('POST', `${poolPath}/update`, body, headers)
const updateAsOperator = (body: object, headers: Record<string, string> = {}) =>
  callOperator('POST', `${poolPath}/update`, body, { Authorization: 'Bearer operator-token-of-tests', ...headers })
const outcome = async (response: ReturnType<typeof update>) => {
  const { status, body } = await response
  return [status, body.error]
}
const get = async (subdomain: string) => (await call('GET', `${poolPath}/allocations/${subdomain}`)).body
const readHistory = async (subdomain: string): Promise<Record<string, string>[]> =>
  (await call('GET', `${poolPath}/history?sub=${subdomain}`)).body.entries

test('200 with the allocation at its new address, its records published, and nothing else changed', async () => {
  const { reservationToken, allocation } = await reserveAndCommit('moved')
  const { status, body } = await update({ subdomain: 'moved', reservationToken, loadBalancerIP: ADDRESS })
  expect([status, body]).toEqual([200, { ...allocation, loadBalancerIP: ADDRESS, dns: { status: 'published' } }])
  expect(await get('moved')).toEqual(body)
  const rows = await database.sql<{ values: string[] }[]>`
    select record -> 'values' as values from dns_names, jsonb_array_elements(desired) record where subdomain = 'moved'`
  expect(rows.map(({ values }) => values)).toEqual([[ADDRESS], [ADDRESS]])
})

test('the history has `updated`, with both addresses, before the publication', async () => {
  const { reservationToken } = await reserveAndCommit('recorded')
  await update({ subdomain: 'recorded', reservationToken, loadBalancerIP: ADDRESS })
  const [published, updated] = await readHistory('recorded')
  expect(published).toMatchObject({ event: 'published', from: 'active', to: 'active' })
  expect(updated).toMatchObject({
    event: 'updated',
    from: 'active',
    to: 'active',
    actor: 'in-cluster',
    detail: `203.0.113.10 replaced by ${ADDRESS}`,
  })
})

test('the token still holds the name after an update', async () => {
  const { reservationToken } = await reserveAndCommit('twice')
  expect((await update({ subdomain: 'twice', reservationToken, loadBalancerIP: ADDRESS })).status).toBe(200)
  const back = { subdomain: 'twice', reservationToken, loadBalancerIP: '203.0.113.10' }
  expect((await update(back)).body.loadBalancerIP).toBe('203.0.113.10')
  expect((await call('DELETE', `${poolPath}/release`, { subdomain: 'twice', reservationToken })).status).toBe(200)
})

test.each([
  ['the same address', { loadBalancerIP: '203.0.113.10' }],
  ['only the FQDN', { sovereignFQDN: ' Unchanged.Pool.TEST. ' }],
  ['nothing', {}],
  ['null for the FQDN', { sovereignFQDN: null }],
])('%s is 200 and has no effect', async (_, change) => {
  const subdomain = 'unchanged'
  const held = (await call('POST', `${poolPath}/reserve`, { subdomain })).body.reservationToken
  await call('POST', `${poolPath}/commit`, commitBody(subdomain, held))
  const before = [await get(subdomain), await readHistory(subdomain)]
  const { status, body } = await update({ subdomain, reservationToken: held, ...change })
  expect([status, body]).toEqual([200, before[0]])
  expect([await get(subdomain), await readHistory(subdomain)]).toEqual(before)
  await call('DELETE', `${poolPath}/release?sub=${subdomain}`)
})

describe('the rejections in their order of precedence', () => {
  const foreign = '/api/v1/pool/x.test'
  const good = {
    subdomain: 'missing',
    reservationToken: unknownToken,
    loadBalancerIP: ADDRESS,
    sovereignFQDN: 'missing.x.test',
  }
  const faults = { reservationToken: '', loadBalancerIP: '169.254.1.1', sovereignFQDN: 'x' }
  test.each<readonly [string, string, object, number, string]>([
    ['invalid-format before missing-token', foreign, { ...faults, subdomain: '-' }, 422, 'invalid-format'],
    ['missing-token before invalid-lb-ip', foreign, { ...good, ...faults }, 422, 'missing-token'],
    ['missing-token: absent', foreign, { subdomain: 'missing' }, 422, 'missing-token'],
    ['invalid-lb-ip before invalid-fqdn', foreign, { ...good, ...faults, reservationToken: 'x' }, 422, 'invalid-lb-ip'],
    ['invalid-fqdn before unsupported-pool', foreign, { ...good, sovereignFQDN: 'a.x.test' }, 422, 'invalid-fqdn'],
    ['unsupported-pool before not-found', foreign, good, 422, 'unsupported-pool'],
    ['not-found before token-mismatch', poolPath, { ...good, sovereignFQDN: null }, 404, 'not-found'],
  ])('%s', async (_, path, body, status, error) => {
    expect(await outcome(call('POST', `${path}/update`, body))).toEqual([status, error])
  })

  test('409 not-active before token-mismatch while the name is only reserved', async () => {
    await reserveName('waiting')
    const body = { subdomain: 'waiting', reservationToken: unknownToken, loadBalancerIP: ADDRESS }
    expect(await outcome(update(body))).toEqual([409, 'not-active'])
    await database.advance(DEFAULT_RESERVATION_TTL_MS)
    expect(await outcome(update(body))).toEqual([404, 'not-found'])
  })

  test('403 token-mismatch, and the address stays', async () => {
    await reserveAndCommit('guarded')
    for (const reservationToken of [unknownToken, 'no uuid']) {
      const body = { subdomain: 'guarded', reservationToken, loadBalancerIP: ADDRESS }
      expect(await outcome(update(body))).toEqual([403, 'token-mismatch'])
    }
    expect(await get('guarded')).toMatchObject({ loadBalancerIP: '203.0.113.10' })
  })
})

describe('on the operator listener', () => {
  test('the token may be omitted, and the history names the operator', async () => {
    await reserveAndCommit('by-operator')
    const { status, body } = await updateAsOperator({ subdomain: 'by-operator', loadBalancerIP: ADDRESS })
    expect([status, body.loadBalancerIP]).toEqual([200, ADDRESS])
    expect((await readHistory('by-operator'))[1]).toMatchObject({ event: 'updated', actor: 'operator' })
  })

  test('a token that is sent must match', async () => {
    const { reservationToken } = await reserveAndCommit('by-both')
    const body = { subdomain: 'by-both', loadBalancerIP: ADDRESS }
    expect(await outcome(updateAsOperator({ ...body, reservationToken: unknownToken }))).toEqual([
      403,
      'token-mismatch',
    ])
    expect((await updateAsOperator({ ...body, reservationToken })).status).toBe(200)
  })
})

describe('with an Idempotency-Key', () => {
  test('the same request is executed once and replayed', async () => {
    const { reservationToken } = await reserveAndCommit('keyed')
    const body = { subdomain: 'keyed', reservationToken, loadBalancerIP: ADDRESS }
    const key = { 'Idempotency-Key': 'update-0123456789-a' }
    const responses = await Promise.all(Array.from({ length: 5 }, () => update(body, key)))
    expect(new Set(responses.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(responses[0]?.status).toBe(200)
    // A later change is not undone by a replay.
    await update({ ...body, loadBalancerIP: '198.51.100.8' })
    expect((await update(body, key)).body.loadBalancerIP).toBe(ADDRESS)
    expect(await get('keyed')).toMatchObject({ loadBalancerIP: '198.51.100.8' })
    expect(await outcome(update({ ...body, loadBalancerIP: '198.51.100.9' }, key))).toEqual([
      422,
      'idempotency-key-reused',
    ])
  })

  test.each(['client', 'operator'])(
    'a replay by the %s never changes or describes the name of the next client',
    async who => {
      const subdomain = `passed-${who}`
      const { reservationToken } = await reserveAndCommit(subdomain)
      const key = { 'Idempotency-Key': `update-0123456789-${who}` }
      const body = { subdomain, loadBalancerIP: ADDRESS }
      const repeat = () =>
        who === 'operator' ? updateAsOperator(body, key) : update({ ...body, reservationToken }, key)
      expect((await repeat()).status).toBe(200)
      await call('DELETE', `${poolPath}/release?sub=${subdomain}`)
      expect(await outcome(repeat())).toEqual([404, 'not-found'])
      await reserveAndCommit(subdomain)
      const response = await repeat()
      expect([response.status, response.body.error]).toEqual([409, 'conflict'])
      expect(response.text).not.toContain(ADDRESS)
      expect(await get(subdomain)).toMatchObject({ loadBalancerIP: '203.0.113.10' })
    },
  )
})

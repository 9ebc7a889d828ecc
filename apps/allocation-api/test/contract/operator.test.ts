import { until } from '@pool/test-kit/poll.ts'
import { startApi } from '@pool/test-kit/services.ts'
import { afterAll, describe, expect, test } from 'vitest'
import { createContractCall, poolPath, startTestService } from '../support/service.ts'

const tokens = ['first-token-of-tests', 'second.token.of.tests~/+==', 'third-token-of-tests']
const { api, call, database } = await startTestService({
  PDM_OPERATOR_TOKENS: ` ${tokens.join(' ,\t')},, `,
  PDM_OPERATOR_ONLY_LIST: 'true',
  PDM_TEST_SETTINGS: JSON.stringify({ validationAttempts: 10_000 }),
})
const open = await startApi(database.url, {
  PDM_OPERATOR_TOKENS: 'one-token-of-tests',
  PDM_SWEEPER_INTERVAL: '1h',
  PDM_TRUSTED_PROXIES: '127.0.0.0/8, ::1',
  PDM_TEST_SETTINGS: JSON.stringify({ validationAttempts: 1 }),
  PROVIDER_TOKEN_URLS: 'closed=https://127.0.0.1:1/',
})
const closed = await startApi(database.url, { PDM_OPERATOR_TOKENS: ' , ', PDM_SWEEPER_INTERVAL: '1h' })
afterAll(() => Promise.all([open.process.stop(), closed.process.stop()]))

const operator = createContractCall(api.operatorUrl ?? '')
const as = (authorization: string) => ({ Authorization: authorization })

test("without tokens the operator's port is closed", () => {
  expect(closed.operatorUrl).toBeNull()
})

test("with tokens the operator's port differs from the in-cluster port", () => {
  expect(api.operatorUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
  expect(api.operatorUrl).not.toBe(api.url)
})

test.each(tokens)('each of several tokens is accepted: %s', async token => {
  const { status, body } = await operator('GET', `${poolPath}/list`, undefined, as(`Bearer ${token}`))
  expect([status, body.poolDomain]).toEqual([200, 'pool.test'])
})

test.each(['bearer', 'BEARER', 'bEaReR'])('the scheme is case-insensitive: %s', async scheme => {
  expect((await operator('GET', '/healthz', undefined, as(`${scheme} third-token-of-tests`))).status).toBe(200)
})

test.each(['', 'admin', 'a user'])(
  'Basic is accepted with a token as the password, whatever the user: %j',
  async user => {
    const basic = as(`Basic ${btoa(`${user}:second.token.of.tests~/+==`)}`)
    expect((await operator('GET', '/healthz', undefined, basic)).status).toBe(200)
  },
)

describe('401 with WWW-Authenticate', () => {
  const rows: readonly (readonly [rule: string, headers: Record<string, string>])[] = [
    ['no Authorization', {}],
    ['an empty Authorization', as('')],
    ['the scheme alone', as('Bearer')],
    ['the scheme and space', as('Bearer   ')],
    ['a token without scheme', as('third-token-of-tests')],
    ['another scheme', as('Digest third-token-of-tests')],
    ['Basic with another password', as(`Basic ${btoa('third-token-of-tests:third')}`)],
    ['Basic without a password', as(`Basic ${btoa('third-token-of-tests')}`)],
    ['an unknown token', as('Bearer fourth')],
    ['a token in other letters', as('Bearer THIRD-TOKEN-OF-TESTS')],
    ['the beginning of a token', as('Bearer thir')],
    ['a token and more', as('Bearer third-token-of-testss')],
    ['two tokens', as('Bearer third-token-of-tests second.token.of.tests~/+==')],
    ['all tokens as they are configured', as(`Bearer ${tokens.join(',')}`)],
    ['a token in quotes', as('Bearer "third-token-of-tests"')],
    ['a scheme that begins like it', as('BearerX third-token-of-tests')],
    ['a token that is too long to be true', as(`Bearer ${'a'.repeat(8_000)}`)],
    ['a token in another header', { 'X-Authorization': 'Bearer third-token-of-tests' }],
  ]
  test.each(rows)('%s', async (_, headers) => {
    const answer = await operator('GET', `${poolPath}/list`, undefined, headers)
    expect(answer.status).toBe(401)
    expect(answer.body.error).toBe('unauthorized')
    expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="operator"')
  })

  test('a token in the query is not accepted', async () => {
    expect((await operator('GET', `${poolPath}/list?access_token=third-token-of-tests`)).status).toBe(401)
  })

  test.each([
    ['GET', '/healthz'],
    ['GET', '/metrics'],
    ['GET', '/openapi.json'],
    ['GET', '/docs'],
    ['GET', '/nope'],
    ['PUT', `${poolPath}/reserve`],
    ['OPTIONS', `${poolPath}/list`],
  ])('for every path, before any other error: %s %s', async (method, path) => {
    expect((await operator(method, path)).status).toBe(401)
  })

  test('without reading a body or writing to the database', async () => {
    expect((await operator('POST', `${poolPath}/reserve`, { subdomain: 'intruder' })).status).toBe(401)
    expect((await operator('POST', `${poolPath}/reserve`, 'x'.repeat(100_000))).status).toBe(401)
    expect((await call('GET', `${poolPath}/check?sub=intruder`)).body.available).toBe(true)
  })
})

test('the in-cluster port requires no token', async () => {
  expect((await call('GET', `${poolPath}/check?sub=a`)).status).toBe(200)
  expect((await call('GET', `${poolPath}/check?sub=a`, undefined, as('Bearer wrong'))).status).toBe(200)
})

describe('PDM_OPERATOR_ONLY_LIST', () => {
  test.each(['list', 'history'])('true removes %s from the in-cluster port only', async verb => {
    expect(await call('GET', `${poolPath}/${verb}`)).toMatchObject({
      status: 404,
      body: { error: 'not-found', detail: expect.stringContaining('operator listener') },
    })
    expect((await operator('GET', `${poolPath}/${verb}`, undefined, as('Bearer third-token-of-tests'))).status).toBe(
      200,
    )
  })

  test('true removes the list of deployments from the in-cluster port, but not single deployments', async () => {
    const { status, headers, body } = await api.call('GET', '/api/v1/deployments')
    expect([status, headers.get('allow')]).toEqual([405, 'POST'])
    expect(body.detail).toContain('operator listener')
    const unknown = '/api/v1/deployments/11111111-2222-4333-8444-555555555555'
    expect(await call('GET', unknown)).toMatchObject({ status: 404, body: { detail: 'No such deployment.' } })
    expect((await operator('GET', '/api/v1/deployments', undefined, as('Bearer third-token-of-tests'))).status).toBe(
      200,
    )
  })

  test('true does not affect other operations of the in-cluster port', async () => {
    for (const path of [`${poolPath}/check?sub=a`, '/api/v1/reserved', '/healthz', '/openapi.json', '/docs']) {
      expect((await call('GET', path)).status, path).toBe(200)
    }
  })

  test.each(['list', 'history'])('unset, %s is on both ports', async verb => {
    expect((await createContractCall(open.url)('GET', `${poolPath}/${verb}`)).status).toBe(200)
    expect(
      (
        await createContractCall(open.operatorUrl ?? '')(
          'GET',
          `${poolPath}/${verb}`,
          undefined,
          as('Bearer one-token-of-tests'),
        )
      ).status,
    ).toBe(200)
  })
})

describe('behind a proxy', () => {
  const reserve = (listening: { readonly url: string }, subdomain: string, client: string) =>
    createContractCall(listening.url)(
      'POST',
      `${poolPath}/reserve`,
      { subdomain },
      { 'X-Forwarded-For': `198.51.100.66, ${client}` },
    )
  const readAddress = async (sub: string) => {
    const { body } = await createContractCall(open.url)('GET', `${poolPath}/history?sub=${sub}`)
    return body.entries[0].address
  }

  test('the history and the log have the address that a trusted proxy added', async () => {
    expect((await reserve(open, 'proxied', '203.0.113.1')).status).toBe(201)
    expect(await readAddress('proxied')).toBe('203.0.113.1')
    const logged = await until('the request is logged', () => open.lines.find(line => line.includes('/reserve')))
    expect(JSON.parse(logged)).toMatchObject({ address: '203.0.113.1' })
  })

  test('by default they have the address of the connection', async () => {
    expect((await reserve(api, 'direct', '203.0.113.1')).status).toBe(201)
    expect(await readAddress('direct')).toMatch(/^(?:127\.0\.0\.1|::1)$/)
  })

  test('each client has its own attempts', async () => {
    const validate = async (forwarded: string) => {
      const body = { provider: 'closed', token: 'x' }
      const path = '/api/v1/credentials/validate'
      return (await createContractCall(open.url)('POST', path, body, { Forwarded: forwarded })).status
    }
    // The provider does not answer, so each attempt that is allowed ends with 503. One is allowed per minute.
    expect(await validate('for="203.0.113.2:4711"')).toBe(503)
    expect(await validate('for=203.0.113.2')).toBe(429)
    expect(await validate('for=203.0.113.3, for=203.0.113.2')).toBe(429)
    expect(await validate('for=203.0.113.3')).toBe(503)
  })
})

test('both listeners serve the same names, and the history records the listener', async () => {
  const bearer = as('Bearer third-token-of-tests')
  const { body } = await operator('POST', `${poolPath}/reserve`, { subdomain: 'shared' }, bearer)
  const more = {
    reservationToken: body.reservationToken,
    sovereignFQDN: 'shared.pool.test',
    loadBalancerIP: '10.0.0.1',
  }
  expect((await call('POST', `${poolPath}/commit`, { subdomain: 'shared', ...more })).status).toBe(200)
  expect((await operator('DELETE', `${poolPath}/release?sub=shared`, undefined, bearer)).status).toBe(200)
  const { entries } = (await operator('GET', `${poolPath}/history?sub=shared`, undefined, bearer)).body
  expect(entries.map(({ event, actor }: Record<string, string>) => [event, actor])).toEqual([
    ['withdrawn', 'convergence'],
    ['released', 'operator'],
    ['published', 'convergence'],
    ['committed', 'in-cluster'],
    ['reserved', 'operator'],
  ])
})

test('the log records the listener', async () => {
  await expect.poll(() => api.lines.some(line => line.includes('"listener":"operator"'))).toBe(true)
  await expect.poll(() => api.lines.some(line => line.includes('"listener":"in-cluster"'))).toBe(true)
})

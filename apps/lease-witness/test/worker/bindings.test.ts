import { describe, expect, test } from 'vitest'
import { expectLease, expectProblem } from '../http/support/bodies.ts'
import { freshSlot, hashToken, leasePath, type SendOptions } from '../http/support/client.ts'
import { captureLogs } from '../http/support/logs.ts'
import { sendWithBindings } from './support/host.ts'
import { replaceBindings } from './support/object.ts'

const write = { headers: { 'If-Match': '0', 'X-Holder': 'region-a' } }

test('a slot with a location hint is acquired', async () => {
  const bindings = { LOCATION_HINTS: 'fresh/=weur' }
  expectLease(await sendWithBindings(bindings, 'PUT', leasePath(freshSlot()), write), 200, { generation: 1 })
})

test.each([
  [{ JURISDICTION: 'europe' }, 'JURISDICTION must be one of'],
  [{ LOCATION_HINTS: 'eu/=europe' }, 'LOCATION_HINTS must be'],
])('%j: 503, nothing is granted, and the log says why', async (bindings, reason) => {
  using logged = captureLogs()
  const path = leasePath(freshSlot())
  for (const method of ['GET', 'PUT']) {
    expectProblem(await sendWithBindings(bindings, method, path, write), 503, 'lease-unavailable')
  }
  expect(logged.lines()[0]).toMatchObject({ msg: 'object-unavailable', reason: expect.stringContaining(reason) })
  expectProblem(await sendWithBindings({}, 'GET', path), 404, 'not-found')
})

test.each<[bindings: object, msg: string, detail: string]>([
  [{ MAX_WAIT_SECONDS: 'abc' }, 'invalid-settings', 'MAX_WAIT_SECONDS must be'],
  [{ MAX_REQUESTS_PER_MINUTE: '-3' }, 'invalid-settings', 'MAX_REQUESTS_PER_MINUTE must be'],
  [{ LOG_LEVEL: 'warn' }, 'invalid-settings', 'LOG_LEVEL must be'],
  [{ TOKEN_POLICIES: '{' }, 'invalid-settings', 'TOKEN_POLICIES must be'],
  [{ BEARER_TOKENS_CSV: 'mark-of-two words' }, 'invalid-settings', 'BEARER_TOKENS_CSV must be'],
  [{ MAX_WAIT_SECOND: '5' }, 'questionable-variable', 'did you mean MAX_WAIT_SECONDS?'],
  [{ MAX_WAIT_SECOND: 5 }, 'questionable-variable', 'did you mean MAX_WAIT_SECONDS?'],
  [{ DRAIN: 'yes' }, 'questionable-variable', 'must be true or false'],
])('%j has no effect, and the log says so', async (bindings, msg, detail) => {
  using logged = captureLogs()
  await sendWithBindings(bindings, 'GET', leasePath(freshSlot()))
  expect(logged.lines()).toContainEqual(expect.objectContaining({ msg, detail: expect.stringContaining(detail) }))
  expect(logged.text()).not.toContain('mark-of-two')
})

describe('a variable of any type of wrangler.toml', () => {
  test.each([
    ['5', 'false'],
    [5, false],
  ])('a number as %j and a truth value as %j: the log has the request only', async (count, DRAIN) => {
    using logged = captureLogs()
    const counts = { MAX_WAIT_SECONDS: count, MAX_REQUESTS_PER_MINUTE: count }
    const bindings: object = { ...counts, DRAIN, LOG_LEVEL: 'info', ASSETS: {}, TEST_CLOCK_PATH: '/x' }
    expectProblem(await sendWithBindings(bindings, 'GET', leasePath(freshSlot())), 404, 'not-found')
    expect(logged.lines().map(({ msg }) => msg)).toEqual(['request'])
  })

  test.each(['true', true])('DRAIN as %j rejects writes', async DRAIN => {
    const slot = freshSlot()
    await replaceBindings(slot, { DRAIN })
    expectProblem(await sendWithBindings({ DRAIN }, 'PUT', leasePath(slot), write), 503, 'draining')
    const drained = await sendWithBindings({ DRAIN }, 'POST', '/leases/drain', {
      body: JSON.stringify({ slots: [slot] }),
    })
    expect([drained.status, drained.json]).toMatchObject([200, { pending: [] }])
  })

  test('tokens and location hints as lists', async () => {
    const tokens = ['first-token-of-a-list-0123456789', 'second-token-of-a-list-012345678']
    const lists: object = { BEARER_TOKENS_CSV: tokens, LOCATION_HINTS: ['us/=enam', 'fresh/=weur'] }
    for (const token of tokens) {
      const authorized = { ...write, authorization: `Bearer ${token}` }
      expectLease(await sendWithBindings(lists, 'PUT', leasePath(freshSlot()), authorized), 200, { generation: 1 })
    }
  })

  test.each([String, (policies: string) => JSON.parse(policies)])('TOKEN_POLICIES as text or array', async toValue => {
    const token = 'token-of-a-policy-0123456789abcdef'
    const policies = [{ name: 'one', token: await hashToken(token), access: 'write' }]
    const TOKEN_POLICIES = toValue(JSON.stringify(policies))
    const authorized = { ...write, authorization: `Bearer ${token}` }
    expectLease(await sendWithBindings({ TOKEN_POLICIES }, 'PUT', leasePath(freshSlot()), authorized), 200, {
      generation: 1,
    })
  })
})

describe('policies in the Secrets Store', () => {
  const TOKEN = 'token-of-a-stored-policy-0123456789'
  const authorized: SendOptions = { ...write, authorization: `Bearer ${TOKEN}` }

  test('a token of a policy in the Secrets Store is accepted', async () => {
    const policies = JSON.stringify([{ name: 'stored', token: await hashToken(TOKEN), access: 'write' }])
    const TOKEN_POLICIES = { get: async () => policies }
    expectLease(await sendWithBindings({ TOKEN_POLICIES }, 'PUT', leasePath(freshSlot()), authorized), 200, {
      generation: 1,
    })
  })

  test.each([{}, null])('%j is neither text nor a secret: tokens of BEARER_TOKENS_CSV are accepted', async value => {
    using logged = captureLogs()
    const bindings: object = { TOKEN_POLICIES: value }
    expectLease(await sendWithBindings(bindings, 'PUT', leasePath(freshSlot()), write), 200, { generation: 1 })
    expect(logged.lines()).toContainEqual(expect.objectContaining({ msg: 'policies-unavailable' }))
  })

  test('while the Secrets Store does not respond: 503, but tokens of BEARER_TOKENS_CSV are accepted', async () => {
    using logged = captureLogs()
    const TOKEN_POLICIES = { get: () => Promise.reject(new Error('no response')) }
    const path = leasePath(freshSlot())
    expectProblem(await sendWithBindings({ TOKEN_POLICIES }, 'PUT', path, authorized), 503, 'lease-unavailable')
    expect(logged.lines()).toContainEqual(
      expect.objectContaining({ msg: 'policies-unavailable', reason: 'Error: no response' }),
    )
    const listed = await sendWithBindings({ TOKEN_POLICIES }, 'PUT', path, write)
    expectLease(listed, 200, { generation: 1 })
    const anonymous = await sendWithBindings({ TOKEN_POLICIES }, 'PUT', path, { authorization: null })
    expect(anonymous.status).toBe(401)
  })
})

test('with a dataset, each request writes a data point, which holds no slot, holder or token', async () => {
  const points: unknown[] = []
  const METRICS = { writeDataPoint: (point: unknown) => points.push(point) }
  const path = leasePath(freshSlot())
  await sendWithBindings({ METRICS }, 'PUT', path, write)
  await sendWithBindings({ METRICS }, 'GET', path, { authorization: null })
  await sendWithBindings({ METRICS }, 'GET', '/elsewhere')
  const doubles = [expect.any(Number)]
  expect(points).toEqual([
    { indexes: ['granted'], blobs: ['PUT', '/lease/:slot', 'granted', '200'], doubles },
    { indexes: ['unauthorized'], blobs: ['GET', '/lease/:slot', 'unauthorized', '401'], doubles },
    { indexes: ['not-found'], blobs: ['GET', 'none', 'not-found', '404'], doubles },
  ])
})

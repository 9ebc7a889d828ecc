import { describe, expect, test } from 'vitest'
import {
  createSteps,
  DEFAULT_RESERVATION_TTL_MS,
  poolPath,
  startTestService,
  unknownToken,
} from '../support/service.ts'

const { call, database } = await startTestService()
const { reserveName, reserveAndCommit, commitBody } = createSteps(call)
const commit = (body: unknown, path = poolPath) => call('POST', `${path}/commit`, body)
const outcome = async (answer: ReturnType<typeof commit>) => {
  const { status, body } = await answer
  return [status, body.error]
}

test('200 with the allocation, flat, and its records published', async () => {
  const { reservationToken, reservedAt } = await reserveName('acme', { createdBy: 'team a' })
  const { status, body } = await commit(commitBody('acme', reservationToken))
  expect(status).toBe(200)
  expect(body).toEqual({
    poolDomain: 'pool.test',
    subdomain: 'acme',
    state: 'active',
    reservedAt,
    createdBy: 'team a',
    sovereignFQDN: 'acme.pool.test',
    loadBalancerIP: '203.0.113.10',
    committedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    dns: { status: 'published' },
  })
})

test('an active name has no expiry and shows no token', async () => {
  const { allocation } = await reserveAndCommit('plain')
  expect(Object.keys(allocation)).not.toContain('expiresAt')
  expect(Object.keys(allocation)).not.toContain('reservationToken')
})

test.each([
  ['a private address is good', { loadBalancerIP: '10.0.0.1' }, { loadBalancerIP: '10.0.0.1' }],
  ['a loopback address is good', { loadBalancerIP: '127.0.0.1' }, { loadBalancerIP: '127.0.0.1' }],
  ['unknown fields are ignored', { x: {} }, { loadBalancerIP: '203.0.113.10' }],
])('%s', async (rule, change, expected) => {
  const subdomain = `r-${rule.length}-${rule.toLowerCase().replace(/[^a-z]+/g, '-')}`.slice(0, 60)
  const { reservationToken } = await reserveName(subdomain)
  const { status, body } = await commit({ ...commitBody(subdomain, reservationToken), ...change })
  expect(status).toBe(200)
  expect(body).toMatchObject(expected)
})

test.each([
  ['is lower-cased', 'Exact-A.Pool.TEST', 'exact-a'],
  ['loses its trailing dot', 'exact-b.pool.test.', 'exact-b'],
  ['is trimmed', ' \texact-c.pool.test.\n', 'exact-c'],
])('sovereignFQDN %s', async (_, sovereignFQDN, subdomain) => {
  const { reservationToken } = await reserveName(subdomain)
  const { status, body } = await commit({ ...commitBody(subdomain, reservationToken), sovereignFQDN })
  expect([status, body.sovereignFQDN]).toEqual([200, `${subdomain}.pool.test`])
})

test.each([
  ['another domain', 'x.example'],
  ['another name of the pool', 'other.pool.test'],
  ['another name that only begins the same', 'exact.pool.testing'],
])('422 invalid-fqdn for %s, and the reservation stays', async (_, sovereignFQDN) => {
  const subdomain = 'exact'
  const { reservationToken } = await reserveName(subdomain)
  const body = { ...commitBody(subdomain, reservationToken), sovereignFQDN }
  expect(await outcome(commit(body))).toEqual([422, 'invalid-fqdn'])
  expect((await call('DELETE', `${poolPath}/release`, { subdomain, reservationToken })).status).toBe(200)
})

test('a token is compared as a UUID: capitals are the same token', async () => {
  const { reservationToken } = await reserveName('capitals')
  expect((await commit(commitBody('capitals', reservationToken.toUpperCase()))).status).toBe(200)
})

test('404 not-found for a name that is not reserved', async () => {
  expect(await outcome(commit(commitBody('missing', unknownToken)))).toEqual([404, 'not-found'])
})

test('404 not-found when the name was released', async () => {
  const { reservationToken } = await reserveName('let-go')
  await call('DELETE', `${poolPath}/release?sub=let-go`)
  expect(await outcome(commit(commitBody('let-go', reservationToken)))).toEqual([404, 'not-found'])
})

test('409 already-active for a second commit with the same token', async () => {
  const { reservationToken } = await reserveAndCommit('again')
  expect(await outcome(commit(commitBody('again', reservationToken)))).toEqual([409, 'already-active'])
})

test('410 reservation-expired after the expiry, and the name does not become active', async () => {
  const { reservationToken } = await reserveName('late')
  await database.advance(DEFAULT_RESERVATION_TTL_MS)
  expect(await outcome(commit(commitBody('late', reservationToken)))).toEqual([410, 'reservation-expired'])
  expect((await call('GET', `${poolPath}/allocations/late`)).status).toBe(404)
})

test('403 token-mismatch with another token, and the holder can still commit', async () => {
  const { reservationToken } = await reserveName('guarded')
  expect(await outcome(commit(commitBody('guarded', unknownToken)))).toEqual([403, 'token-mismatch'])
  expect((await commit(commitBody('guarded', reservationToken))).status).toBe(200)
})

test('403 token-mismatch with the token of an earlier reservation of the name', async () => {
  const earlier = await reserveName('stale')
  await call('DELETE', `${poolPath}/release?sub=stale`)
  await reserveName('stale')
  expect(await outcome(commit(commitBody('stale', earlier.reservationToken)))).toEqual([403, 'token-mismatch'])
})

test('403 token-mismatch with the token of another name', async () => {
  const other = await reserveName('other-name')
  await reserveName('this-name')
  expect(await outcome(commit(commitBody('this-name', other.reservationToken)))).toEqual([403, 'token-mismatch'])
})

test('exactly one of many concurrent commits with one token is 200, the others are 409', async () => {
  const { reservationToken } = await reserveName('race')
  const answers = await Promise.all(Array.from({ length: 20 }, () => commit(commitBody('race', reservationToken))))
  expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(409)])
})

describe('the rejections in their order of precedence', () => {
  const foreign = '/api/v1/pool/x.test'
  // Each row also has the errors of all rows below it.
  const good = {
    subdomain: 'missing',
    reservationToken: unknownToken,
    loadBalancerIP: '10.0.0.1',
    sovereignFQDN: 'missing.x.test',
  }
  const faults = { reservationToken: '', loadBalancerIP: 'x', sovereignFQDN: 'x' }
  test.each([
    ['invalid-format before missing-token', foreign, { ...faults, subdomain: '-' }, 422, 'invalid-format'],
    ['missing-token before invalid-lb-ip', foreign, { ...good, ...faults }, 422, 'missing-token'],
    ['missing-token before missing-lb-ip', foreign, { subdomain: 'missing' }, 422, 'missing-token'],
    [
      'missing-lb-ip before invalid-fqdn',
      foreign,
      { ...good, loadBalancerIP: '', sovereignFQDN: 'x' },
      422,
      'missing-lb-ip',
    ],
    [
      'invalid-lb-ip before invalid-fqdn',
      foreign,
      { ...good, loadBalancerIP: 'x', sovereignFQDN: 'x' },
      422,
      'invalid-lb-ip',
    ],
    ['invalid-fqdn before unsupported-pool', foreign, { ...good, sovereignFQDN: 'x' }, 422, 'invalid-fqdn'],
    ['the exact name before unsupported-pool', foreign, { ...good, sovereignFQDN: 'a.x.test' }, 422, 'invalid-fqdn'],
    ['unsupported-pool before not-found', foreign, good, 422, 'unsupported-pool'],
    ['not-found before token-mismatch', poolPath, { ...good, sovereignFQDN: 'missing.pool.test' }, 404, 'not-found'],
  ])('%s', async (_, path, body, status, error) => {
    expect(await outcome(commit(body, path))).toEqual([status, error])
  })

  test('already-active before token-mismatch', async () => {
    await reserveAndCommit('order-active')
    expect(await outcome(commit(commitBody('order-active', unknownToken)))).toEqual([409, 'already-active'])
  })

  test('reservation-expired before token-mismatch', async () => {
    await reserveName('order-expired')
    await database.advance(DEFAULT_RESERVATION_TTL_MS)
    expect(await outcome(commit(commitBody('order-expired', 'no uuid')))).toEqual([410, 'reservation-expired'])
  })
})

import { describe, expect, test } from 'vitest'
import { createSteps, DEFAULT_RESERVATION_TTL_MS, poolPath, startTestService } from '../support/service.ts'

const { call, database } = await startTestService({
  DNSPROVIDER_MANAGED_DOMAINS: 'pool.test, eu.pool.test, second.test',
  PDM_PLATFORM_PREFIX: 'platform',
})
const { reserveName, reserveAndCommit, check } = createSteps(call)

test('a free name is available, with its fqdn and no reason', async () => {
  expect(await check('free')).toEqual({ available: true, fqdn: 'free.pool.test' })
})

test('a free name that is too long for a bucket is available, with a detail about object storage', async () => {
  const fits = 'a'.repeat(63 - 'platform-.pool.test'.length)
  expect(await check(fits)).toEqual({ available: true, fqdn: `${fits}.pool.test` })
  const { body } = await call('GET', `${poolPath}/check?sub=${fits}a`)
  expect(body).toEqual({
    available: true,
    detail: expect.stringMatching(/free, but .*bucket.*64 characters.*63.*shorter by 1\.$/),
    fqdn: `${fits}a.pool.test`,
  })
})

test('a reserved name is not available: reserved-state', async () => {
  await reserveName('held')
  expect(await check('held')).toMatchObject({ available: false, reason: 'reserved-state', fqdn: 'held.pool.test' })
})

test('an active name is not available: active-state', async () => {
  await reserveAndCommit('live')
  expect(await check('live')).toMatchObject({ available: false, reason: 'active-state', fqdn: 'live.pool.test' })
})

test('a name is available again once its reservation has expired, although its row still exists', async () => {
  await reserveName('gone')
  await database.advance(DEFAULT_RESERVATION_TTL_MS)
  expect(await database.sql`select 1 from pool_allocations where subdomain = 'gone'`).toHaveLength(1)
  expect(await check('gone')).toEqual({ available: true, fqdn: 'gone.pool.test' })
})

test('an active name does not expire', async () => {
  await reserveAndCommit('lasting')
  await database.advance(DEFAULT_RESERVATION_TTL_MS * 1_000)
  expect(await check('lasting')).toMatchObject({ reason: 'active-state' })
})

test('a name is available again once it is released', async () => {
  await reserveAndCommit('left')
  await call('DELETE', `${poolPath}/release?sub=left`)
  expect(await check('left')).toEqual({ available: true, fqdn: 'left.pool.test' })
})

test('a reservation affects only its own pool', async () => {
  await reserveName('both')
  const { body } = await call('GET', '/api/v1/pool/second.test/check?sub=both')
  expect(body).toEqual({ available: true, fqdn: 'both.second.test' })
})

test('case and space around label and pool are not significant', async () => {
  await reserveName('spaced')
  const { body } = await call('GET', '/api/v1/pool/%20POOL.test/check?sub=%20%09SpaceD%20')
  expect(body).toMatchObject({ reason: 'reserved-state', fqdn: 'spaced.pool.test' })
})

test('the first of two sub parameters counts', async () => {
  expect((await call('GET', `${poolPath}/check?sub=one&sub=two`)).body).toMatchObject({ fqdn: 'one.pool.test' })
})

describe('the reasons in their order of precedence; the status is always 200', () => {
  const rows: readonly (readonly [rule: string, path: string, expected: object])[] = [
    [
      'a missing sub is invalid-format, and is named',
      `${poolPath}/check?subdomain=acme`,
      { reason: 'invalid-format', detail: expect.stringMatching(/^The query parameter sub is required: one label /) },
    ],
    ['an empty sub is invalid-format', `${poolPath}/check?sub=`, { reason: 'invalid-format' }],
    ['a bad label is invalid-format', `${poolPath}/check?sub=a_b`, { reason: 'invalid-format' }],
    ['an A-label is invalid-format', `${poolPath}/check?sub=xn--a`, { reason: 'invalid-format' }],
    ['a sub that is not UTF-8 is invalid-format', `${poolPath}/check?sub=%ff`, { reason: 'invalid-format' }],
    ['a sub with NUL is invalid-format', `${poolPath}/check?sub=a%00`, { reason: 'invalid-format' }],
    ['KELVIN SIGN is invalid-format', `${poolPath}/check?sub=%E2%84%AAel`, { reason: 'invalid-format' }],
    ['invalid-format comes before unsupported-pool', '/api/v1/pool/x.test/check?sub=-', { reason: 'invalid-format' }],
    [
      'a final dot of the pool is dropped',
      '/api/v1/pool/Pool.Test./check?sub=www',
      { reason: 'reserved', fqdn: 'www.pool.test' },
    ],
    ['a foreign pool is unsupported-pool', '/api/v1/pool/x.test/check?sub=a', { reason: 'unsupported-pool' }],
    ['unsupported-pool comes before reserved', '/api/v1/pool/x.test/check?sub=www', { reason: 'unsupported-pool' }],
    ['a reserved label is reserved', `${poolPath}/check?sub=www`, { reason: 'reserved', fqdn: 'www.pool.test' }],
    ['a reserved label in upper case', `${poolPath}/check?sub=WWW`, { reason: 'reserved', fqdn: 'www.pool.test' }],
    [
      'a label that would cover another pool is reserved',
      `${poolPath}/check?sub=eu`,
      { reason: 'reserved', fqdn: 'eu.pool.test' },
    ],
  ]
  test.each(rows)('%s', async (_, path, expected) => {
    const { status, body } = await call('GET', path)
    expect(status).toBe(200)
    expect(body).toEqual({ available: false, detail: expect.stringMatching(/\.$/), ...expected })
  })

  test('reserved comes before reserved-state', async () => {
    await database.sql`
      insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
      values ('pool.test', 'vault', 'reserved', now(), now() + interval '1 hour', sha256(gen_random_uuid()::text::bytea), '')`
    expect(await check('vault')).toMatchObject({ reason: 'reserved' })
  })
})

test('a check writes nothing', async () => {
  const count = () => database.sql`
    select (select count(*) from pool_allocations) as rows, (select count(*) from allocation_history) as entries`
  const before = await count()
  await Promise.all(['free', 'held', 'live', 'gone'].map(check))
  expect(await count()).toEqual(before)
})

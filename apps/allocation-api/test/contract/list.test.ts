import { beforeAll, expect, test } from 'vitest'
import { DEFAULT_RESERVATION_TTL_MS, startTestService } from '../support/service.ts'

const { call, database } = await startTestService({
  DNSPROVIDER_MANAGED_DOMAINS: 'pool.test,empty.test,paged.test,odd.test',
})

const list = (pool: string, query = '') => call('GET', `/api/v1/pool/${pool}/list${query}`)
const names = (body: { allocations: { subdomain: string }[] }) => body.allocations.map(({ subdomain }) => subdomain)
const take = async (pool: string, subdomain: string, state: 'reserved' | 'active') => {
  const path = `/api/v1/pool/${pool}`
  const { body } = await call('POST', `${path}/reserve`, { subdomain, createdBy: `by ${subdomain}` })
  if (state === 'reserved') return body
  const { reservationToken } = body
  const more = { reservationToken, sovereignFQDN: `${subdomain}.${pool}`, loadBalancerIP: '10.0.0.1' }
  return (await call('POST', `${path}/commit`, { subdomain, ...more })).body
}

/** In byte order: "-" before digits, digits before letters. */
const sorted = ['a', 'a-a', 'a0', 'aa', 'b', 'b1', 'c', 'z', 'z-9', 'zz']

beforeAll(async () => {
  for (const [i, subdomain] of [...sorted].reverse().entries()) {
    await take('paged.test', subdomain, i % 2 ? 'active' : 'reserved')
  }
})

test('a pool without allocations is an empty list', async () => {
  const { status, body } = await list('empty.test')
  expect(status).toBe(200)
  expect(body).toEqual({ poolDomain: 'empty.test', allocations: [] })
})

test('each allocation has its own fields, and none its token', async () => {
  const { reservationToken, ...reserved } = await take('pool.test', 'held', 'reserved')
  const active = await take('pool.test', 'live', 'active')
  const { body, text } = await list('pool.test')
  expect(body).toEqual({ poolDomain: 'pool.test', allocations: [reserved, active] })
  expect(text).not.toContain(reservationToken)
  expect(text).not.toContain('reservationToken')
})

test('without a limit every allocation, sorted by subdomain, without nextCursor', async () => {
  const { body } = await list('paged.test')
  expect(names(body)).toEqual(sorted)
  expect(body.nextCursor).toBeUndefined()
})

test('only the requested pool', async () => {
  await take('odd.test', 'here', 'reserved')
  expect(names((await list('odd.test')).body)).toEqual(['here'])
})

test('case and space around the pool are not significant', async () => {
  expect((await list('%20Paged.TEST')).body).toMatchObject({ poolDomain: 'paged.test' })
})

test.each([1, 2, 3, 4, 5, 9, 10, 11])('limit %i: nextCursor leads through every item once', async limit => {
  const seen: string[] = []
  let cursor: string | undefined = ''
  let pages = 0
  while (cursor !== undefined) {
    const { status, body } = await list('paged.test', `?limit=${limit}${cursor && `&cursor=${cursor}`}`)
    expect(status).toBe(200)
    expect(body.allocations.length).toBeLessThanOrEqual(limit)
    seen.push(...names(body))
    cursor = body.nextCursor
    pages += 1
  }
  expect(seen).toEqual(sorted)
  expect(pages).toBe(Math.ceil(sorted.length / limit))
})

test('a cursor needs no escaping in a query', async () => {
  const { body } = await list('paged.test', '?limit=1')
  expect(encodeURIComponent(body.nextCursor)).toBe(body.nextCursor)
})

test('a cursor without a limit returns every later item', async () => {
  const { body } = await list('paged.test', '?limit=4')
  expect(names((await list('paged.test', `?cursor=${body.nextCursor}`)).body)).toEqual(sorted.slice(4))
})

test('a cursor stays valid if its name is deleted and another is added', async () => {
  for (const name of ['m1', 'm2', 'm4']) await take('empty.test', name, 'reserved')
  const { body } = await list('empty.test', '?limit=2')
  await call('DELETE', '/api/v1/pool/empty.test/release?sub=m2')
  await take('empty.test', 'm3', 'reserved')
  expect(names((await list('empty.test', `?cursor=${body.nextCursor}`)).body)).toEqual(['m3', 'm4'])
  for (const name of ['m1', 'm3', 'm4']) await call('DELETE', `/api/v1/pool/empty.test/release?sub=${name}`)
})

test.each(['reserved', 'active'] as const)('?state=%s lists and paginates only those', async state => {
  const all = (await list('paged.test')).body.allocations.filter((one: { state: string }) => one.state === state)
  const { body } = await list('paged.test', `?state=${state}&limit=3`)
  expect(body.allocations).toEqual(all.slice(0, 3))
  const rest = await list('paged.test', `?state=${state}&cursor=${body.nextCursor}`)
  expect(rest.body.allocations).toEqual(all.slice(3))
})

test.each(['reserved', 'active'])('an expired reservation is not listed, with ?state=%s or without', async state => {
  await take('odd.test', `left-${state}`, 'reserved')
  await take('odd.test', `listed-${state}`, 'active')
  await database.advance(DEFAULT_RESERVATION_TTL_MS)
  expect(names((await list('odd.test')).body)).not.toContain(`left-${state}`)
  expect(names((await list('odd.test')).body)).toContain(`listed-${state}`)
  expect(names((await list('odd.test', `?state=${state}`)).body)).not.toContain(`left-${state}`)
})

test('several database pages are one response', async () => {
  await database.sql`
    insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
    select 'empty.test', 'n' || lpad(n::text, 4, '0'), 'reserved', now(), now() + interval '1 hour', sha256(gen_random_uuid()::text::bytea), ''
    from generate_series(1, 2500) n`
  const all = names((await list('empty.test')).body)
  expect(all).toHaveLength(2_500)
  expect([...all].sort()).toEqual(all)
})

test.each(['1000', '1001', '2000', '2147483647'])('limit %s is served as 1000, with nextCursor', async limit => {
  const { body } = await list('empty.test', `?limit=${limit}`)
  expect(body.allocations).toHaveLength(1_000)
  const next = (await list('empty.test', `?limit=${limit}&cursor=${body.nextCursor}`)).body
  const last = (await list('empty.test', `?limit=${limit}&cursor=${next.nextCursor}`)).body
  expect([next.allocations.length, last.allocations.length, last.nextCursor]).toEqual([1_000, 500, undefined])
})

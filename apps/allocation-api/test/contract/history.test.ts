import { startApi } from '@pool/test-kit/services.ts'
import { beforeAll, describe, expect, test } from 'vitest'
import {
  createSteps,
  DEFAULT_RESERVATION_TTL_MS,
  poolPath,
  startTestService,
  unknownToken,
} from '../support/service.ts'

const { call, database } = await startTestService({ DNSPROVIDER_MANAGED_DOMAINS: 'pool.test,empty.test,second.test' })
const { reserveName, reserveAndCommit, commitBody } = createSteps(call)
const history = async (query = '', path = poolPath) => (await call('GET', `${path}/history${query}`)).body
const events = (body: { entries: { event: string }[] }) => body.entries.map(({ event }) => event)

describe('a name from reserve to release', () => {
  let renewedUntil: string
  beforeAll(async () => {
    const id = (requestId: string) => ({ 'X-Request-Id': requestId })
    const reserve = await call('POST', `${poolPath}/reserve`, { subdomain: 'life', createdBy: 'team a' }, id('life-1'))
    const { reservationToken } = reserve.body
    const renewed = await call('POST', `${poolPath}/renew`, { subdomain: 'life', reservationToken }, id('life-2'))
    renewedUntil = renewed.body.expiresAt
    await call('POST', `${poolPath}/commit`, commitBody('life', reservationToken), id('life-3'))
    await call('DELETE', `${poolPath}/release?sub=life`, undefined, id('life-4'))
  })

  test('newest first: event, states, actor, time and request id, and the changes of its records', async () => {
    const body = await history('?sub=life')
    expect(body.poolDomain).toBe('pool.test')
    const common = {
      poolDomain: 'pool.test',
      subdomain: 'life',
      actor: 'in-cluster',
      address: '127.0.0.1',
      createdBy: 'team a',
    }
    const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const ofRecords = { poolDomain: 'pool.test', subdomain: 'life', actor: 'convergence', createdBy: '', at }
    expect(body.entries).toEqual([
      { ...ofRecords, event: 'withdrawn', from: 'none', to: 'none' },
      { ...common, at, event: 'released', from: 'active', to: 'none', requestId: 'life-4' },
      { ...ofRecords, event: 'published', from: 'active', to: 'active' },
      {
        ...common,
        at,
        event: 'committed',
        from: 'reserved',
        to: 'active',
        requestId: 'life-3',
        renewalCount: 1,
        renewedUntil,
      },
      { ...common, at, event: 'reserved', from: 'none', to: 'reserved', requestId: 'life-1' },
    ])
    const times = body.entries.map((entry: { at: string }) => entry.at)
    expect([...times].sort().reverse()).toEqual(times)
  })
})

test('without ?sub= the whole pool, and only that pool', async () => {
  await reserveName('one')
  await reserveName('two')
  await call('POST', '/api/v1/pool/second.test/reserve', { subdomain: 'three' })
  const { entries } = await history('?limit=2')
  expect(entries.map((entry: { subdomain: string }) => entry.subdomain)).toEqual(['two', 'one'])
  expect((await history('', '/api/v1/pool/second.test')).entries).toHaveLength(1)
})

test('a name or a pool without history is an empty list', async () => {
  expect(await history('?sub=never')).toEqual({ poolDomain: 'pool.test', entries: [] })
  expect(await history('', '/api/v1/pool/empty.test')).toEqual({ poolDomain: 'empty.test', entries: [] })
})

test('?sub= is trimmed and lower-cased', async () => {
  await reserveName('cased')
  expect(events(await history('?sub=%20CASED'))).toEqual(['reserved'])
})

test('a replaced reservation leaves its expiry and the new reservation, with the same request id', async () => {
  await reserveName('over', { createdBy: 'first' })
  await database.advance(DEFAULT_RESERVATION_TTL_MS)
  await reserveName('over', { createdBy: 'second' })
  const { entries } = await history('?sub=over')
  expect(entries).toMatchObject([
    { event: 'reserved', from: 'none', to: 'reserved', createdBy: 'second' },
    { event: 'expired', from: 'reserved', to: 'none', createdBy: 'first' },
    { event: 'reserved', from: 'none', to: 'reserved', createdBy: 'first' },
  ])
  expect(entries[0].requestId).toBe(entries[1].requestId)
})

test('a release of a reservation goes from reserved to none', async () => {
  await reserveName('dropped')
  await call('DELETE', `${poolPath}/release?sub=dropped`)
  expect((await history('?sub=dropped')).entries[0]).toMatchObject({ event: 'released', from: 'reserved', to: 'none' })
})

describe('renewals are in the entry that ends the reservation, which has their number and the last expiry', () => {
  const renew = async (subdomain: string, reservationToken: string): Promise<string> =>
    (await call('POST', `${poolPath}/renew`, { subdomain, reservationToken })).body.expiresAt
  const reserveAndRenew = async (subdomain: string) => {
    const { reservationToken } = await reserveName(subdomain)
    await renew(subdomain, reservationToken)
    await renew(subdomain, reservationToken)
    return { reservationToken, renewedUntil: await renew(subdomain, reservationToken) }
  }
  const newest = async (subdomain: string, count: number) =>
    (await history(`?sub=${subdomain}`)).entries
      .filter(({ actor }: { actor: string }) => actor !== 'convergence')
      .slice(0, count)

  test('a commit; the release of the active name has none', async () => {
    const { reservationToken, renewedUntil } = await reserveAndRenew('r-commit')
    await call('POST', `${poolPath}/commit`, commitBody('r-commit', reservationToken))
    await call('DELETE', `${poolPath}/release?sub=r-commit`)
    const [released, committed, reserved] = await newest('r-commit', 9)
    expect(committed).toMatchObject({ event: 'committed', renewalCount: 3, renewedUntil })
    expect(released).not.toHaveProperty('renewalCount')
    expect(released).not.toHaveProperty('renewedUntil')
    expect(reserved).toMatchObject({ event: 'reserved' })
  })

  test('a release, and not the next reservation', async () => {
    const { renewedUntil } = await reserveAndRenew('r-release')
    await call('DELETE', `${poolPath}/release?sub=r-release`)
    await reserveName('r-release')
    await call('DELETE', `${poolPath}/release?sub=r-release`)
    const [last, , first] = await newest('r-release', 3)
    expect(first).toMatchObject({ event: 'released', renewalCount: 3, renewedUntil })
    expect(last).not.toHaveProperty('renewalCount')
  })

  test('the expiry of a reservation that is replaced, and not the next one', async () => {
    const { renewedUntil } = await reserveAndRenew('r-over')
    await database.advance(DEFAULT_RESERVATION_TTL_MS)
    await reserveName('r-over')
    await database.advance(DEFAULT_RESERVATION_TTL_MS)
    await reserveName('r-over')
    const [, second, , first] = await newest('r-over', 4)
    const expectedExpiry = new Date(Date.parse(renewedUntil) - DEFAULT_RESERVATION_TTL_MS).toISOString()
    expect(first).toMatchObject({ event: 'expired', renewalCount: 3, renewedUntil: expectedExpiry })
    expect(second).toMatchObject({ event: 'expired' })
    expect(second).not.toHaveProperty('renewalCount')
  })

  test('1,000 renewals add no entry', async () => {
    const { reservationToken } = await reserveName('r-many')
    for (let batch = 0; batch < 10; batch += 1) {
      await Promise.all(Array.from({ length: 100 }, () => renew('r-many', reservationToken)))
    }
    await call('DELETE', `${poolPath}/release?sub=r-many`)
    expect(await newest('r-many', 9)).toMatchObject([{ event: 'released', renewalCount: 1_000 }, { event: 'reserved' }])
  })
})

test('a rejected request leaves no entry', async () => {
  await reserveAndCommit('quiet')
  const before = await history()
  await call('POST', `${poolPath}/reserve`, { subdomain: 'quiet' })
  await call('POST', `${poolPath}/commit`, commitBody('quiet', unknownToken))
  await call('POST', `${poolPath}/renew`, { subdomain: 'quiet', reservationToken: unknownToken })
  await call('DELETE', `${poolPath}/release`, { subdomain: 'quiet', reservationToken: unknownToken })
  await call('DELETE', `${poolPath}/release?sub=missing`)
  expect(await history()).toEqual(before)
})

test.each([1, 2, 3, 50])('limit %i: nextCursor leads through every item once', async limit => {
  const all = (await history()).entries
  const seen: unknown[] = []
  let cursor: string | undefined = ''
  while (cursor !== undefined) {
    const body: { entries: unknown[]; nextCursor?: string } = await history(
      `?limit=${limit}${cursor && `&cursor=${cursor}`}`,
    )
    expect(body.entries.length).toBeLessThanOrEqual(limit)
    seen.push(...body.entries)
    cursor = body.nextCursor
  }
  expect(seen).toEqual(all)
})

test('?sub= is paginated', async () => {
  const first = await history('?sub=over&limit=1')
  expect(events(first)).toEqual(['reserved'])
  expect(events(await history(`?sub=over&cursor=${first.nextCursor}`))).toEqual(['expired', 'reserved'])
})

test.each([
  ['changed', "update allocation_history set actor = 'operator'"],
  ['removed', 'delete from allocation_history'],
  ['emptied', 'truncate allocation_history'],
])('the database rejects that the history is %s', async (_, statement) => {
  const before = await history()
  await expect(database.sql.unsafe(statement)).rejects.toMatchObject({ message: 'allocation_history is append-only' })
  expect(await history()).toEqual(before)
})

test('the sweeper records what it deletes as expired, without a request id', async () => {
  const { reservationToken } = await reserveName('swept')
  await call('POST', `${poolPath}/renew`, { subdomain: 'swept', reservationToken })
  await database.advance(DEFAULT_RESERVATION_TTL_MS)
  const sweeping = await startApi(database.url, { PDM_SWEEPER_INTERVAL: '20ms' })
  await expect
    .poll(async () => events(await history('?sub=swept')), { interval: 20, timeout: 5_000 })
    .toEqual(['expired', 'reserved'])
  await sweeping.process.stop()
  const [entry] = (await history('?sub=swept')).entries
  expect(entry).toMatchObject({ from: 'reserved', to: 'none', actor: 'sweeper', renewalCount: 1 })
  expect(Date.parse(entry.renewedUntil)).toBeLessThanOrEqual(Date.parse(entry.at))
  expect(Object.keys(entry)).not.toContain('requestId')
  expect(Object.keys(entry)).not.toContain('address')
  expect(await database.sql`select 1 from pool_allocations where subdomain = 'swept'`).toEqual([])
})

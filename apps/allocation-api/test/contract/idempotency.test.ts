import { describe, expect, test } from 'vitest'
import {
  createContractCall,
  createSteps,
  DEFAULT_RESERVATION_TTL_MS,
  poolPath,
  startTestService,
  unknownToken,
} from '../support/service.ts'

const KEY_TTL_MS = 86_400_000
const { api, call, database } = await startTestService({
  PDM_OPERATOR_TOKENS: 'operator-token-of-tests',
  DNSPROVIDER_MANAGED_DOMAINS: 'pool.test,second.test',
})
const { reserveName, commitBody, check } = createSteps(call)

const reserve = (body: object, key: string, path = poolPath) =>
  call('POST', `${path}/reserve`, body, { 'Idempotency-Key': key })
const commit = (body: object, key: string) => call('POST', `${poolPath}/commit`, body, { 'Idempotency-Key': key })
const release = (body: object, key: string) => call('DELETE', `${poolPath}/release`, body, { 'Idempotency-Key': key })
const reused = { status: 422, body: { error: 'idempotency-key-reused' } }
const readEvents = async (name: string) =>
  (await call('GET', `${poolPath}/history?sub=${name}`)).body.entries
    .filter(({ actor }: { actor: string }) => actor !== 'convergence')
    .map(({ event }: { event: string }) => event)

describe('reserve', () => {
  test('the same key with the same request replays: the same token, the same expiry, one reservation', async () => {
    const first = await reserve({ subdomain: 'r-same', createdBy: 'a' }, 'r-same')
    const second = await reserve({ subdomain: 'r-same', createdBy: 'a' }, 'r-same')
    expect([second.status, second.body]).toEqual([201, first.body])
    expect(await readEvents('r-same')).toEqual(['reserved'])
  })

  test('equivalent requests are the same: case, space, unknown fields and "" do not count', async () => {
    const first = await reserve({ subdomain: 'r-says' }, 'r-says')
    const second = await reserve(
      { subdomain: ' R-Says ', createdBy: '', later: true },
      'r-says',
      '/api/v1/pool/POOL.test',
    )
    expect([second.status, second.body]).toEqual([201, first.body])
  })

  test.each<readonly [what: string, body: object, path: string]>([
    ['name', { subdomain: 'r-else', createdBy: 'a' }, poolPath],
    ['createdBy', { subdomain: 'r-first', createdBy: 'b' }, poolPath],
    ['pool', { subdomain: 'r-first', createdBy: 'a' }, '/api/v1/pool/second.test'],
  ])('the same key with another %s is 422 and does nothing', async (what, body, path) => {
    await reserve({ subdomain: 'r-first', createdBy: 'a' }, 'r-first')
    expect(await reserve(body, 'r-first', path)).toMatchObject(reused)
    expect(await check('r-else'), what).toMatchObject({ available: true })
  })

  test('a request with another key does not get the reservation', async () => {
    await reserve({ subdomain: 'r-other' }, 'r-other-1')
    expect(await reserve({ subdomain: 'r-other' }, 'r-other-2')).toMatchObject({
      status: 409,
      body: { error: 'conflict' },
    })
  })

  test('a key is compared exactly, including its case', async () => {
    await reserve({ subdomain: 'r-case' }, 'r-case')
    expect(await reserve({ subdomain: 'r-case' }, 'R-case')).toMatchObject({ status: 409 })
  })

  test('concurrent requests with one key all return the same reservation', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => reserve({ subdomain: 'r-race' }, 'r-race')))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]))
    expect(new Set(answers.map(({ body }) => body.reservationToken)).size).toBe(1)
    expect(await readEvents('r-race')).toEqual(['reserved'])
  })

  test('concurrent different requests with one key: one succeeds, the others are 422', async () => {
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, i) => reserve({ subdomain: `r-mixed-${i}` }, 'r-mixed')),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 422, 422, 422, 422])
  })

  test('after a renewal the same token, with the expiry that it has now', async () => {
    const { body: first } = await reserve({ subdomain: 'r-renew' }, 'r-renew')
    await database.advance(60_000)
    const { reservationToken } = first
    const renewed = await call('POST', `${poolPath}/renew`, { subdomain: 'r-renew', reservationToken })
    const { body } = await reserve({ subdomain: 'r-renew' }, 'r-renew')
    expect(body).toEqual({ ...renewed.body, reservationToken })
  })

  test('after its expiry, the same key returns a new reservation with a new token', async () => {
    const { body: first } = await reserve({ subdomain: 'r-late' }, 'r-late')
    await database.advance(DEFAULT_RESERVATION_TTL_MS)
    const { status, body } = await reserve({ subdomain: 'r-late' }, 'r-late')
    expect(status).toBe(201)
    expect(body.reservationToken).not.toBe(first.reservationToken)
    expect((await reserve({ subdomain: 'r-late' }, 'r-late')).body).toEqual(body)
  })

  test("after its expiry, if another client has the name: 409 without that client's token", async () => {
    await reserve({ subdomain: 'r-lost' }, 'r-lost')
    await database.advance(DEFAULT_RESERVATION_TTL_MS)
    const { reservationToken } = await reserveName('r-lost')
    const { status, body, text } = await reserve({ subdomain: 'r-lost' }, 'r-lost')
    expect([status, body.error]).toEqual([409, 'conflict'])
    expect(text).not.toContain(reservationToken)
  })

  test('after its commit the reservation is not live any more: 409', async () => {
    const { body } = await reserve({ subdomain: 'r-done' }, 'r-done')
    await call('POST', `${poolPath}/commit`, commitBody('r-done', body.reservationToken))
    expect(await reserve({ subdomain: 'r-done' }, 'r-done')).toMatchObject({ status: 409, body: { error: 'conflict' } })
  })

  test('a request that fails validation does not use up its key', async () => {
    expect((await reserve({ subdomain: '-' }, 'r-form')).status).toBe(422)
    expect((await reserve({ subdomain: 'www' }, 'r-form')).status).toBe(422)
    expect((await reserve({ subdomain: 'r-form' }, 'r-form')).status).toBe(201)
  })

  test('an expired key can be used again', async () => {
    await reserve({ subdomain: 'r-forgot-1' }, 'r-forgot')
    await database.advance(KEY_TTL_MS - 60_000)
    expect(await reserve({ subdomain: 'r-forgot-2' }, 'r-forgot')).toMatchObject(reused)
    await database.advance(60_000)
    expect((await reserve({ subdomain: 'r-forgot-2' }, 'r-forgot')).status).toBe(201)
    expect((await reserve({ subdomain: 'r-forgot-1' }, 'r-forgot')).status).toBe(422)
  })
})

describe('commit', () => {
  test('the same key with the same request replays the 200', async () => {
    const { reservationToken } = await reserveName('c-same')
    const first = await commit(commitBody('c-same', reservationToken), 'c-same')
    const second = await commit(commitBody('c-same', reservationToken), 'c-same')
    expect([second.status, second.body]).toEqual([200, first.body])
    expect(await readEvents('c-same')).toEqual(['committed', 'reserved'])
  })

  test('concurrent requests with one key are all 200, and one commit', async () => {
    const { reservationToken } = await reserveName('c-race')
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => commit(commitBody('c-race', reservationToken), 'c-race')),
    )
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
    expect(answers[0]?.status).toBe(200)
    expect(await readEvents('c-race')).toEqual(['committed', 'reserved'])
  })

  test.each([
    ['address', { loadBalancerIP: '203.0.113.11' }],
    ['token', { reservationToken: unknownToken }],
    ['name', { subdomain: 'c-other', sovereignFQDN: 'c-other.pool.test' }],
  ])('the same key with another %s is 422', async (what, change) => {
    const { reservationToken } = await reserveName(`c-${what.toLowerCase()}`)
    const body = commitBody(`c-${what.toLowerCase()}`, reservationToken)
    await commit(body, `c-${what}`)
    expect(await commit({ ...body, ...change }, `c-${what}`)).toMatchObject(reused)
  })

  test('another key for the same commit is 409 already-active, also without a key', async () => {
    const { reservationToken } = await reserveName('c-other-key')
    const body = commitBody('c-other-key', reservationToken)
    await commit(body, 'c-key-1')
    expect(await commit(body, 'c-key-2')).toMatchObject({ status: 409, body: { error: 'already-active' } })
    expect(await call('POST', `${poolPath}/commit`, body)).toMatchObject({ status: 409 })
  })

  test('a replay after the release is 404 and commits nothing', async () => {
    const { reservationToken } = await reserveName('c-gone')
    expect((await commit(commitBody('c-gone', reservationToken), 'c-gone')).status).toBe(200)
    await call('DELETE', `${poolPath}/release?sub=c-gone`)
    const second = await commit(commitBody('c-gone', reservationToken), 'c-gone')
    expect(second).toMatchObject({ status: 404, body: { error: 'not-found' } })
    expect(await check('c-gone')).toMatchObject({ available: true })
  })

  test('a replay when another client has reserved or committed the name is 409, and says nothing about it', async () => {
    const { reservationToken } = await reserveName('c-taken')
    const repeat = () => commit(commitBody('c-taken', reservationToken), 'c-taken')
    expect((await repeat()).status).toBe(200)
    await call('DELETE', `${poolPath}/release?sub=c-taken`)
    const other = await reserveName('c-taken')
    const whileReserved = await repeat()
    expect(whileReserved).toMatchObject({ status: 409, body: { error: 'conflict' } })
    await call('POST', `${poolPath}/commit`, {
      ...commitBody('c-taken', other.reservationToken),
      loadBalancerIP: '198.51.100.9',
    })
    const whileActive = await repeat()
    expect(whileActive).toMatchObject({ status: 409, body: { error: 'already-active' } })
    expect(whileReserved.text + whileActive.text).not.toMatch(/203\.0\.113|198\.51\.100|dns|committedAt/)
  })
})

describe('release', () => {
  test('the same key with the same request replays the 200 with what was freed', async () => {
    await reserveName('l-same')
    const first = await release({ subdomain: 'l-same' }, 'l-same')
    const second = await release({ subdomain: 'l-same' }, 'l-same')
    expect([second.status, second.body]).toEqual([200, first.body])
    expect(await readEvents('l-same')).toEqual(['released', 'reserved'])
  })

  test('a replay does not release a later reservation of the name', async () => {
    await reserveName('l-next')
    await release({ subdomain: 'l-next' }, 'l-next')
    await reserveName('l-next')
    expect((await release({ subdomain: 'l-next' }, 'l-next')).status).toBe(200)
    expect(await check('l-next')).toMatchObject({ available: false, reason: 'reserved-state' })
  })

  test('the name in the body and in ?sub= are the same request', async () => {
    await reserveName('l-query')
    const first = await release({ subdomain: 'l-query' }, 'l-query')
    const second = await call('DELETE', `${poolPath}/release?sub=l-query`, undefined, { 'Idempotency-Key': 'l-query' })
    expect(second.body).toEqual(first.body)
  })

  test('the same key with another name or another token is 422', async () => {
    const { reservationToken } = await reserveName('l-else')
    await release({ subdomain: 'l-else' }, 'l-else')
    expect(await release({ subdomain: 'l-other' }, 'l-else')).toMatchObject(reused)
    expect(await release({ subdomain: 'l-else', reservationToken }, 'l-else')).toMatchObject(reused)
  })

  test('without a key the second release is 404', async () => {
    await reserveName('l-plain')
    expect((await call('DELETE', `${poolPath}/release?sub=l-plain`)).status).toBe(200)
    expect((await call('DELETE', `${poolPath}/release?sub=l-plain`)).status).toBe(404)
  })
})

describe('a 4xx is not stored under its key', () => {
  const put = (body: object, key: string) => call('POST', `${poolPath}/update`, body, { 'Idempotency-Key': key })
  const free = (name: string) => call('DELETE', `${poolPath}/release?sub=${name}`)
  const activate = async (name: string) => {
    const { reservationToken } = await reserveName(name)
    await call('POST', `${poolPath}/commit`, commitBody(name, reservationToken))
    return reservationToken
  }

  test('each operation decides again, and its 2xx is stored', async () => {
    const key = (name: string) => `n-${name}`
    await reserveName('n-reserve')
    const { reservationToken } = await reserveName('n-update')
    const change = { subdomain: 'n-update', reservationToken, loadBalancerIP: '192.0.2.9' }
    const attempts = {
      reserve: () => reserve({ subdomain: 'n-reserve' }, key('reserve')),
      commit: () => commit(commitBody('n-commit', unknownToken), key('commit')),
      update: () => put(change, key('update')),
      release: () => release({ subdomain: 'n-release' }, key('release')),
    }
    const sendAll = async () => {
      const statuses: Record<string, number> = {}
      for (const [name, attempt] of Object.entries(attempts)) statuses[name] = (await attempt()).status
      return statuses
    }
    expect(await sendAll()).toEqual({ reserve: 409, commit: 404, update: 409, release: 404 })
    expect(await sendAll()).toEqual({ reserve: 409, commit: 404, update: 409, release: 404 })
    await free('n-reserve')
    await reserveName('n-commit')
    await database.sql`
      update pool_allocations set token_hash = sha256(${unknownToken}::text::bytea) where subdomain = 'n-commit'`
    await call('POST', `${poolPath}/commit`, commitBody('n-update', reservationToken))
    await reserveName('n-release')
    expect(await sendAll()).toEqual({ reserve: 201, commit: 200, update: 200, release: 200 })
    expect(await sendAll()).toEqual({ reserve: 201, commit: 200, update: 200, release: 200 })
  })

  test('so the key can be used for another request', async () => {
    await activate('n-taken')
    expect((await reserve({ subdomain: 'n-taken' }, 'n-other')).status).toBe(409)
    expect((await reserve({ subdomain: 'n-other' }, 'n-other')).status).toBe(201)
    expect(await reserve({ subdomain: 'n-taken' }, 'n-other')).toMatchObject(reused)
  })
})

test('each listener has its own keys', async () => {
  const headers = { 'Idempotency-Key': 'x-space', Authorization: 'Bearer operator-token-of-tests' }
  const operatorCall = (subdomain: string) =>
    createContractCall(api.operatorUrl ?? '')('POST', `${poolPath}/reserve`, { subdomain }, headers)
  expect((await reserve({ subdomain: 'x-inside' }, 'x-space')).status).toBe(201)
  const first = await operatorCall('x-outside')
  expect(first.status).toBe(201)
  expect((await operatorCall('x-outside')).body).toEqual(first.body)
  expect(await operatorCall('x-inside')).toMatchObject(reused)
  expect(await reserve({ subdomain: 'x-outside' }, 'x-space')).toMatchObject(reused)
})

test('one key for two operations: 422', async () => {
  const { body } = await reserve({ subdomain: 'x-verbs' }, 'x-verbs')
  expect(await commit(commitBody('x-verbs', body.reservationToken), 'x-verbs')).toMatchObject(reused)
  expect(await release({ subdomain: 'x-verbs' }, 'x-verbs')).toMatchObject(reused)
  expect(await check('x-verbs')).toMatchObject({ reason: 'reserved-state' })
})

test('one key for two operations is 422 even if their content is equal', async () => {
  await reserve({ subdomain: 'x-says', createdBy: unknownToken }, 'x-says')
  expect(await release({ subdomain: 'x-says', reservationToken: unknownToken }, 'x-says')).toMatchObject(reused)
})

test('renew ignores the key: the same request twice extends twice', async () => {
  const { reservationToken } = await reserveName('x-renew')
  const renew = () =>
    call('POST', `${poolPath}/renew`, { subdomain: 'x-renew', reservationToken }, { 'Idempotency-Key': 'x-renew' })
  const first = await renew()
  await database.advance(60_000)
  const second = await renew()
  const toLifetimeMs = ({ expiresAt, reservedAt }: Record<string, string>) =>
    Date.parse(expiresAt ?? '') - Date.parse(reservedAt ?? '')
  expect(toLifetimeMs(second.body)).toBeGreaterThan(toLifetimeMs(first.body))
})

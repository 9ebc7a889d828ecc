import { describe, expect, test } from 'vitest'
import {
  createContractCall,
  createSteps,
  DEFAULT_RESERVATION_TTL_MS,
  poolPath,
  startTestService,
  unknownToken,
} from '../support/service.ts'

const COOL_OFF_MS = 3_600_000
const { api, call, database } = await startTestService({
  PDM_NAME_COOL_OFF: '1h',
  PDM_OPERATOR_TOKENS: 'operator-token-of-tests',
})
const { commitBody, reserveName, reserveAndCommit, check } = createSteps(call)
const callOperator = createContractCall(api.operatorUrl ?? '')
const operator = (method: string, path: string, body?: unknown) =>
  callOperator(method, path, body, { Authorization: 'Bearer operator-token-of-tests' })

const reserve = (subdomain: string, fields: object = {}, headers?: Record<string, string>) =>
  call('POST', `${poolPath}/reserve`, { subdomain, ...fields }, headers)
const release = (subdomain: string) => call('DELETE', `${poolPath}/release`, { subdomain })
const lift = (subdomain: string) => operator('DELETE', `${poolPath}/cool-off/${subdomain}`)
/** Reserves, commits and releases the name. */
const coolOff = async (subdomain: string) => {
  const { reservationToken } = await reserveAndCommit(subdomain)
  expect((await release(subdomain)).status).toBe(200)
  return reservationToken
}
const readEvents = async (subdomain: string): Promise<string[]> => {
  const { entries } = (await call('GET', `${poolPath}/history?sub=${subdomain}`)).body
  const transitions = entries.filter(({ actor }: { actor: string }) => actor !== 'convergence')
  return transitions.map(({ event, from, to }: Record<string, string>) => `${event} ${from} ${to}`).reverse()
}
const availableAt = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const firstLife = ['reserved none reserved', 'committed reserved active', 'released active none']

describe('a released active name during its cool-off', () => {
  test('check: cooling-off with the time at which it becomes available', async () => {
    const before = Date.now()
    await coolOff('checked')
    const body = await check('checked')
    expect(body).toEqual({
      available: false,
      reason: 'cooling-off',
      detail: expect.stringContaining(body.availableAt),
      fqdn: 'checked.pool.test',
      availableAt,
    })
    expect(Date.parse(body.availableAt) - before).toBeGreaterThan(COOL_OFF_MS - 60_000)
    expect(Date.parse(body.availableAt) - before).toBeLessThan(COOL_OFF_MS + 60_000)
  })

  test('reserve: 409 cooling-off with the same time, also with a wrong token', async () => {
    await coolOff('refused')
    const { availableAt: expected } = await check('refused')
    for (const fields of [{}, { reservationToken: unknownToken }, { reservationToken: 'no uuid' }]) {
      const { status, body } = await reserve('refused', fields)
      expect([status, body.error, body.availableAt]).toEqual([409, 'cooling-off', expected])
      expect(body.detail).toContain(expected)
    }
  })

  test('its records are withdrawn at once', async () => {
    await coolOff('withdrawn')
    const [row] = await database.sql`
      select desired, applied_version = version as applied from dns_names where subdomain = 'withdrawn'`
    expect(row).toEqual({ desired: [], applied: true })
  })

  test('it is not an allocation: get, list, commit, renew, update and release do not find it', async () => {
    const reservationToken = await coolOff('hidden')
    const body = commitBody('hidden', reservationToken)
    const responses = [
      await call('GET', `${poolPath}/allocations/hidden`),
      await call('POST', `${poolPath}/commit`, body),
      await call('POST', `${poolPath}/renew`, body),
      await call('POST', `${poolPath}/update`, body),
      await call('DELETE', `${poolPath}/release`, { subdomain: 'hidden', reservationToken }),
    ]
    expect(responses.map(({ status }) => status)).toEqual(Array(5).fill(404))
    for (const query of ['', '?state=active', '?state=reserved']) {
      expect((await call('GET', `${poolPath}/list${query}`)).text).not.toContain('hidden')
    }
  })

  test('any client can reserve it once the cool-off is over, and the history has no expiry', async () => {
    const reservationToken = await coolOff('later')
    await database.advance(COOL_OFF_MS - 60_000)
    expect((await reserve('later')).body.error).toBe('cooling-off')
    await database.advance(60_000)
    expect(await check('later')).toEqual({ available: true, fqdn: 'later.pool.test' })
    const { status, body } = await reserve('later', { createdBy: 'team b' })
    expect([status, body.createdBy]).toEqual([201, 'team b'])
    expect(await readEvents('later')).toEqual([...firstLife, 'reserved none reserved'])
    // The former token does not match the new reservation.
    expect((await call('POST', `${poolPath}/commit`, commitBody('later', reservationToken))).body.error).toBe(
      'token-mismatch',
    )
  })

  test('a 409 is not stored under its key: a retry decides again', async () => {
    await coolOff('keyed')
    const headers = { 'Idempotency-Key': 'keyed-cool-off-0001' }
    const first = await reserve('keyed', {}, headers)
    await lift('keyed')
    expect([first.status, (await reserve('keyed', {}, headers)).status]).toEqual([409, 201])
  })
})

test('a released reservation that was never committed is free at once', async () => {
  await reserveName('never-active')
  await release('never-active')
  expect(await check('never-active')).toMatchObject({ available: true })
  expect((await reserve('never-active')).status).toBe(201)
})

describe('the former client', () => {
  test('takes the name back with its token: 201 with a new token', async () => {
    const formerToken = await coolOff('back')
    const { status, body } = await reserve('back', { reservationToken: formerToken, createdBy: 'team a' })
    expect([status, body.state, body.createdBy]).toEqual([201, 'reserved', 'team a'])
    expect(body.reservationToken).not.toBe(formerToken)
    expect(await check('back')).toMatchObject({ reason: 'reserved-state' })
    expect((await call('POST', `${poolPath}/commit`, commitBody('back', formerToken))).body.error).toBe(
      'token-mismatch',
    )
    expect((await call('POST', `${poolPath}/commit`, commitBody('back', body.reservationToken))).status).toBe(200)
    expect(await readEvents('back')).toEqual([...firstLife, 'reserved none reserved', 'committed reserved active'])
  })

  test('gets the same reservation again under its Idempotency-Key', async () => {
    const reservationToken = await coolOff('back-keyed')
    const headers = { 'Idempotency-Key': 'take-back-0123456789' }
    const first = await reserve('back-keyed', { reservationToken }, headers)
    const repeated = await reserve('back-keyed', { reservationToken }, headers)
    expect([first.status, repeated.status, repeated.body]).toEqual([201, 201, first.body])
    expect((await reserve('back-keyed', {}, headers)).body.error).toBe('idempotency-key-reused')
  })

  test.each(['release', 'expiry'])('does not shorten the cool-off by the %s of the new reservation', async how => {
    const subdomain = `back-${how}`
    const formerToken = await coolOff(subdomain)
    const { availableAt: until } = await check(subdomain)
    const { reservationToken } = (await reserve(subdomain, { reservationToken: formerToken })).body
    if (how === 'release') await release(subdomain)
    else await database.advance(DEFAULT_RESERVATION_TTL_MS)
    const left = how === 'release' ? 0 : DEFAULT_RESERVATION_TTL_MS
    const expected = new Date(Date.parse(until) - left).toISOString()
    expect(await check(subdomain)).toMatchObject({ reason: 'cooling-off', availableAt: expected })
    expect((await reserve(subdomain)).body).toMatchObject({ error: 'cooling-off', availableAt: expected })
    expect((await reserve(subdomain, { reservationToken })).status).toBe(201)
    const end = how === 'release' ? ['released reserved none'] : ['expired reserved none']
    expect(await readEvents(subdomain)).toEqual([
      ...firstLife,
      'reserved none reserved',
      ...end,
      'reserved none reserved',
    ])
  })

  test.each(['release', 'expiry'])(
    'whose response was lost takes the name back again after the %s of that reservation, until a commit',
    async how => {
      const subdomain = `lost-${how}`
      const formerToken = await coolOff(subdomain)
      const end = () => (how === 'release' ? release(subdomain) : database.advance(DEFAULT_RESERVATION_TTL_MS))
      for (let attempt = 0; attempt < 2; attempt += 1) {
        expect((await reserve(subdomain, { reservationToken: formerToken })).status).toBe(201)
        // The new reservation belongs to the client that has its token.
        expect((await reserve(subdomain, { reservationToken: formerToken })).body.error).toBe('conflict')
        await end()
      }
      const { reservationToken } = (await reserve(subdomain, { reservationToken: formerToken })).body
      await end()
      const latest = (await reserve(subdomain, { reservationToken })).body.reservationToken
      await end()
      // The new token was received, so it has replaced the former one.
      expect((await reserve(subdomain, { reservationToken: formerToken })).body.error).toBe('cooling-off')
      const last = (await reserve(subdomain, { reservationToken: latest })).body.reservationToken
      expect((await call('POST', `${poolPath}/commit`, commitBody(subdomain, last))).status).toBe(200)
      await release(subdomain)
      expect((await reserve(subdomain, { reservationToken: latest })).body.error).toBe('cooling-off')
      expect((await reserve(subdomain, { reservationToken: last })).status).toBe(201)
    },
  )

  test('cannot take it from the client that has reserved it since', async () => {
    const formerToken = await coolOff('too-late')
    await database.advance(COOL_OFF_MS)
    await reserveName('too-late')
    expect((await reserve('too-late', { reservationToken: formerToken })).body.error).toBe('conflict')
  })

  test('a token in a reservation of a free name has no effect', async () => {
    expect((await reserve('plain', { reservationToken: unknownToken })).status).toBe(201)
  })
})

describe('DELETE cool-off, for operators', () => {
  test('204: the name is free, and the history says so', async () => {
    await coolOff('lifted')
    const { status, text } = await lift('Lifted')
    expect([status, text]).toEqual([204, ''])
    expect(await check('lifted')).toEqual({ available: true, fqdn: 'lifted.pool.test' })
    expect((await reserve('lifted')).status).toBe(201)
    expect(await readEvents('lifted')).toEqual([...firstLife, 'cool-off-lifted none none', 'reserved none reserved'])
  })

  test('404 for a name that is free, reserved, active or no longer cooling off', async () => {
    await reserveName('lift-reserved')
    await reserveAndCommit('lift-active')
    await coolOff('lift-twice')
    expect((await lift('lift-twice')).status).toBe(204)
    for (const subdomain of ['lift-free', 'lift-reserved', 'lift-active', 'lift-twice']) {
      expect(await lift(subdomain)).toMatchObject({ status: 404, body: { error: 'not-found' } })
    }
    expect(await check('lift-active')).toMatchObject({ reason: 'active-state' })
  })

  test('404 while the former client has the name again, and 204 once that reservation has expired', async () => {
    const reservationToken = await coolOff('lift-back')
    await reserve('lift-back', { reservationToken })
    expect((await lift('lift-back')).status).toBe(404)
    await database.advance(DEFAULT_RESERVATION_TTL_MS)
    expect((await lift('lift-back')).status).toBe(204)
    expect(await check('lift-back')).toMatchObject({ available: true })
    expect((await readEvents('lift-back')).slice(-2)).toEqual(['expired reserved none', 'cool-off-lifted none none'])
  })
})

test('the metric counts names that are cooling off', async () => {
  await coolOff('counted')
  const { text } = await call('GET', '/metrics')
  expect(text).toMatch(/^pdm_allocations\{.*state="cooling-off".*\} [1-9]/m)
})

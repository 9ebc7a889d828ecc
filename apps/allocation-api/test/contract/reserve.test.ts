import { expect, test } from 'vitest'
import {
  createSteps,
  DEFAULT_RESERVATION_TTL_MS,
  poolPath,
  startTestService,
  unknownToken,
} from '../support/service.ts'

const { call, database } = await startTestService({ DNSPROVIDER_MANAGED_DOMAINS: 'pool.test,eu.pool.test,second.test' })
const { reserveName, reserveAndCommit } = createSteps(call)
const uuidV4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const reserve = (body: unknown, headers?: Record<string, string>) => call('POST', `${poolPath}/reserve`, body, headers)

test('201 with all fields: pool, name, state, times, a UUID v4 and createdBy', async () => {
  const { status, body } = await reserve({ subdomain: 'acme', createdBy: 'team a' })
  expect(status).toBe(201)
  expect(body).toEqual({
    poolDomain: 'pool.test',
    subdomain: 'acme',
    state: 'reserved',
    reservedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    expiresAt: expect.stringMatching(/Z$/),
    reservationToken: expect.stringMatching(uuidV4),
    createdBy: 'team a',
  })
})

test('expiresAt is reservedAt plus the TTL', async () => {
  const { reservedAt, expiresAt } = await reserveName('timed')
  expect(Date.parse(expiresAt) - Date.parse(reservedAt)).toBe(DEFAULT_RESERVATION_TTL_MS)
})

test.each([
  ['left out', {}],
  ['null', { createdBy: null }],
  ['empty', { createdBy: '' }],
])('createdBy is "" when it is %s', async (how, more) => {
  expect(await reserveName(`by-${how.replace(' ', '-')}`, more)).toMatchObject({ createdBy: '' })
})

test('createdBy is stored unchanged, up to 253 characters', async () => {
  const createdBy = ` Zoë <z@x.test> ${'\u{1f600}'.repeat(237)}`
  expect([...createdBy]).toHaveLength(253)
  expect(await reserveName('by-text', { createdBy })).toMatchObject({ createdBy })
})

test('label and pool are trimmed and lower-cased before anything else', async () => {
  const { status, body } = await call('POST', '/api/v1/pool/%20Second.TEST/reserve', { subdomain: ' \tMixed \n' })
  expect(status).toBe(201)
  expect(body).toMatchObject({ poolDomain: 'second.test', subdomain: 'mixed' })
})

test('unknown fields are ignored', async () => {
  const more = { state: 'active', expiresAt: '2999-01-01T00:00:00.000Z', reservationToken: unknownToken, x: [{}] }
  const body = await reserveName('extra', more)
  expect(body).toMatchObject({ state: 'reserved' })
  expect(body.reservationToken).not.toBe(unknownToken)
})

test.each(['text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=latin1', 'nonsense'])(
  'a body is read as JSON whatever its Content-Type: %s',
  async type => {
    const { status } = await reserve({ subdomain: `t${type.replace(/[^a-z]/g, '')}` }, { 'Content-Type': type })
    expect(status).toBe(201)
  },
)

test('409 conflict when the name is reserved, and the holder keeps it', async () => {
  const first = await reserveName('reserved-name', { createdBy: 'first' })
  const { status, body } = await reserve({ subdomain: 'RESERVED-NAME', createdBy: 'second' })
  expect([status, body.error]).toEqual([409, 'conflict'])
  const current = (await call('GET', `${poolPath}/allocations/reserved-name`)).body
  expect(current).toMatchObject({ createdBy: 'first', reservedAt: first.reservedAt, expiresAt: first.expiresAt })
})

test('409 conflict when the name is active', async () => {
  await reserveAndCommit('busy')
  const { status, body } = await reserve({ subdomain: 'busy' })
  expect([status, body.error]).toEqual([409, 'conflict'])
})

test('an expired reservation is replaced, with a new token and new times', async () => {
  const first = await reserveName('over', { createdBy: 'first' })
  await database.advance(DEFAULT_RESERVATION_TTL_MS)
  const second = await reserveName('over', { createdBy: 'second' })
  expect(second.reservationToken).not.toBe(first.reservationToken)
  expect(second.createdBy).toBe('second')
  expect(Date.parse(second.expiresAt) - Date.parse(second.reservedAt)).toBe(DEFAULT_RESERVATION_TTL_MS)
  const late = await call('POST', `${poolPath}/renew`, { subdomain: 'over', reservationToken: first.reservationToken })
  expect([late.status, late.body.error]).toEqual([403, 'token-mismatch'])
})

test('a reservation lives until its last millisecond', async () => {
  await reserveName('nearly')
  await database.advance(DEFAULT_RESERVATION_TTL_MS - 30_000)
  expect((await reserve({ subdomain: 'nearly' })).status).toBe(409)
  await database.advance(30_000)
  expect((await reserve({ subdomain: 'nearly' })).status).toBe(201)
})

test('the same label in two pools is two names', async () => {
  await reserveName('twice')
  expect((await call('POST', '/api/v1/pool/second.test/reserve', { subdomain: 'twice' })).status).toBe(201)
})

test.each([
  ['invalid-format comes before unsupported-pool', '/api/v1/pool/x.test', 'a_b', 'invalid-format'],
  ['unsupported-pool comes before reserved', '/api/v1/pool/x.test', 'www', 'unsupported-pool'],
  ['a reserved label is rejected', poolPath, 'WWW', 'reserved'],
  ['a label that would cover another managed pool is rejected', poolPath, 'eu', 'reserved'],
  ['a label that covers nothing there is granted', '/api/v1/pool/second.test', 'eu', undefined],
])('%s', async (_, path, subdomain, error) => {
  const { status, body } = await call('POST', `${path}/reserve`, { subdomain })
  expect([status, body.error]).toEqual([error ? 422 : 201, error])
})

test('GET /api/v1/reserved is the canonical list: sorted, without duplicates, in lower case', async () => {
  const { status, body } = await call('GET', '/api/v1/reserved')
  expect(status).toBe(200)
  expect(Object.keys(body)).toEqual(['reserved'])
  expect(body.reserved).toEqual([...new Set(body.reserved as string[])].sort())
  expect(body.reserved.join()).toBe(body.reserved.join().toLowerCase())
})

test('every label of the list is rejected, in any case', async () => {
  const { body } = await call('GET', '/api/v1/reserved')
  for (const label of body.reserved as string[]) {
    const check = await call('GET', `/api/v1/pool/pool.test/check?sub=${label.toUpperCase()}`)
    expect(check.body, label).toMatchObject({ available: false, reason: 'reserved' })
  }
})

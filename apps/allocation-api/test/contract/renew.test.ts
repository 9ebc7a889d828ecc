import { expect, test } from 'vitest'
import {
  createSteps,
  DEFAULT_RESERVATION_TTL_MS,
  poolPath,
  startTestService,
  unknownToken,
} from '../support/service.ts'

const MAX_AGE_MS = 1_500_000
const { call, database } = await startTestService({ PDM_RESERVATION_MAX_AGE: '25m' })
const { reserveName, reserveAndCommit, commitBody } = createSteps(call)
const renew = (subdomain: string, reservationToken: unknown) =>
  call('POST', `${poolPath}/renew`, { subdomain, reservationToken })

test('200 with the allocation, whose expiry is a full TTL from now', async () => {
  const { reservationToken } = await reserveName('acme', { createdBy: 'team a' })
  await database.advance(300_000)
  const { status, body } = await renew('acme', reservationToken)
  expect(status).toBe(200)
  expect(body).toEqual({
    poolDomain: 'pool.test',
    subdomain: 'acme',
    state: 'reserved',
    reservedAt: expect.any(String),
    expiresAt: expect.any(String),
    createdBy: 'team a',
  })
  const lifetime = Date.parse(body.expiresAt) - Date.parse(body.reservedAt)
  expect(lifetime).toBeGreaterThanOrEqual(300_000 + DEFAULT_RESERVATION_TTL_MS)
  expect(lifetime).toBeLessThan(300_000 + DEFAULT_RESERVATION_TTL_MS + 30_000)
})

test('a renewed reservation outlives its first expiry with the same token', async () => {
  const { reservationToken } = await reserveName('longer')
  await database.advance(DEFAULT_RESERVATION_TTL_MS - 60_000)
  await renew('longer', reservationToken)
  await database.advance(DEFAULT_RESERVATION_TTL_MS - 60_000)
  expect((await call('POST', `${poolPath}/commit`, commitBody('longer', reservationToken))).status).toBe(200)
})

test('a reservation is never extended beyond its maximum age, and expires then', async () => {
  const { reservationToken } = await reserveName('old')
  await database.advance(500_000)
  await renew('old', reservationToken)
  await database.advance(500_000)
  const { status, body } = await renew('old', reservationToken)
  expect(status).toBe(200)
  expect(Date.parse(body.expiresAt) - Date.parse(body.reservedAt)).toBe(MAX_AGE_MS)
  await database.advance(400_000)
  const again = await renew('old', reservationToken)
  expect([again.status, Date.parse(again.body.expiresAt) - Date.parse(again.body.reservedAt)]).toEqual([
    200,
    MAX_AGE_MS,
  ])
  await database.advance(100_000)
  expect((await renew('old', reservationToken)).body.error).toBe('reservation-expired')
})

test('two concurrent renewals both succeed and agree', async () => {
  const { reservationToken } = await reserveName('both')
  const answers = await Promise.all([renew('both', reservationToken), renew('both', reservationToken)])
  expect(answers.map(({ status }) => status)).toEqual([200, 200])
})

test('404 not-found for a name that is not reserved', async () => {
  expect(await renew('missing', unknownToken)).toMatchObject({ status: 404, body: { error: 'not-found' } })
})

test('409 already-active, also with another token', async () => {
  const { reservationToken } = await reserveAndCommit('live')
  expect(await renew('live', reservationToken)).toMatchObject({ status: 409, body: { error: 'already-active' } })
  expect(await renew('live', unknownToken)).toMatchObject({ status: 409, body: { error: 'already-active' } })
})

test('410 reservation-expired after the expiry, also with another token', async () => {
  const { reservationToken } = await reserveName('late')
  await database.advance(DEFAULT_RESERVATION_TTL_MS)
  expect(await renew('late', reservationToken)).toMatchObject({ status: 410, body: { error: 'reservation-expired' } })
  expect(await renew('late', 'no uuid')).toMatchObject({ status: 410, body: { error: 'reservation-expired' } })
})

test('403 token-mismatch with another token, and the expiry stays', async () => {
  const { expiresAt } = await reserveName('guarded')
  expect(await renew('guarded', unknownToken)).toMatchObject({ status: 403, body: { error: 'token-mismatch' } })
  expect((await call('GET', `${poolPath}/allocations/guarded`)).body.expiresAt).toBe(expiresAt)
})

test.each([
  ['invalid-format before missing-token', '/api/v1/pool/x.test', { subdomain: '-' }, 'invalid-format'],
  ['missing-token before unsupported-pool', '/api/v1/pool/x.test', { subdomain: 'a' }, 'missing-token'],
  [
    'unsupported-pool before not-found',
    '/api/v1/pool/x.test',
    { subdomain: 'a', reservationToken: 'x' },
    'unsupported-pool',
  ],
])('%s', async (_, path, body, error) => {
  expect(await call('POST', `${path}/renew`, body)).toMatchObject({ status: 422, body: { error } })
})

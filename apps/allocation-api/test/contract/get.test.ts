import { expect, test } from 'vitest'
import { createSteps, DEFAULT_RESERVATION_TTL_MS, poolPath, startTestService } from '../support/service.ts'

const { call, database } = await startTestService()
const { reserveName, reserveAndCommit } = createSteps(call)
const get = (subdomain: string, path = poolPath) => call('GET', `${path}/allocations/${subdomain}`)

test('a reservation, without its token', async () => {
  const { reservationToken, ...allocation } = await reserveName('held', { createdBy: 'team a' })
  const { status, body, text } = await get('held')
  expect([status, body]).toEqual([200, allocation])
  expect(text).not.toContain(reservationToken)
})

test('an active name, with the status of its records', async () => {
  const { allocation } = await reserveAndCommit('live')
  expect((await get('live')).body).toEqual(allocation)
})

test('case and space around the name are not significant', async () => {
  await reserveName('spaced')
  expect((await get('%20SPACED%20', '/api/v1/pool/POOL.test')).status).toBe(200)
})

test('404 not-found for a free name', async () => {
  expect(await get('missing')).toMatchObject({ status: 404, body: { error: 'not-found' } })
})

test('404 not-found once the reservation has expired', async () => {
  await reserveName('late')
  await database.advance(DEFAULT_RESERVATION_TTL_MS)
  expect(await get('late')).toMatchObject({ status: 404, body: { error: 'not-found' } })
})

test('422 invalid-format comes before unsupported-pool', async () => {
  expect(await get('-', '/api/v1/pool/x.test')).toMatchObject({ status: 422, body: { error: 'invalid-format' } })
  expect(await get('a', '/api/v1/pool/x.test')).toMatchObject({ status: 422, body: { error: 'unsupported-pool' } })
})

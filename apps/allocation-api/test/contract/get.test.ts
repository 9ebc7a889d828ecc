import { expect, test } from 'vitest'
import { pool, startService, stepsOf, TTL_MS } from '../support/service.ts'

const { call, database } = await startService()
const { reserved, active } = stepsOf(call)
const get = (subdomain: string, path = pool) => call('GET', `${path}/allocations/${subdomain}`)

test('a reservation, without its token', async () => {
  const { reservationToken, ...allocation } = await reserved('held', { createdBy: 'team a' })
  const { status, body, text } = await get('held')
  expect([status, body]).toEqual([200, allocation])
  expect(text).not.toContain(reservationToken)
})

test('an active name, with the state of its records', async () => {
  const { allocation } = await active('live')
  expect((await get('live')).body).toEqual(allocation)
})

test('case and space around the name are not significant', async () => {
  await reserved('spaced')
  expect((await get('%20SPACED%20', '/api/v1/pool/POOL.test')).status).toBe(200)
})

test('404 not-found when nobody holds the name', async () => {
  expect(await get('nobody')).toMatchObject({ status: 404, body: { error: 'not-found' } })
})

test('404 not-found once the reservation has expired', async () => {
  await reserved('late')
  await database.advance(TTL_MS)
  expect(await get('late')).toMatchObject({ status: 404, body: { error: 'not-found' } })
})

test('422 invalid-format comes before unsupported-pool', async () => {
  expect(await get('-', '/api/v1/pool/x.test')).toMatchObject({ status: 422, body: { error: 'invalid-format' } })
  expect(await get('a', '/api/v1/pool/x.test')).toMatchObject({ status: 422, body: { error: 'unsupported-pool' } })
})

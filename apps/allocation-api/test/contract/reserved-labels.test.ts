import { expect, test } from 'vitest'
import { startTestService } from '../support/service.ts'

const { call } = await startTestService()

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

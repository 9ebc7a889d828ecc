import { expect, test } from 'vitest'
import { expectLease, expectProblem } from '../http/support/bodies.ts'
import { freshSlot, leasePath } from '../http/support/client.ts'
import { captureLogs } from '../http/support/logs.ts'
import { sendWithBindings } from './support/host.ts'

const write = { headers: { 'If-Match': '0', 'X-Holder': 'region-a' } }

test('a slot with a location hint is acquired', async () => {
  const bindings = { LOCATION_HINTS: 'fresh/=weur' }
  expectLease(await sendWithBindings(bindings, 'PUT', leasePath(freshSlot()), write), 200, { generation: 1 })
})

test.each([
  [{ JURISDICTION: 'europe' }, 'JURISDICTION must be one of'],
  [{ LOCATION_HINTS: 'eu/=europe' }, 'LOCATION_HINTS must be'],
])('%j: 503, nothing is granted, and the log says why', async (bindings, reason) => {
  using logged = captureLogs()
  const path = leasePath(freshSlot())
  for (const method of ['GET', 'PUT']) {
    expectProblem(await sendWithBindings(bindings, method, path, write), 503, 'lease-unavailable')
  }
  expect(logged.lines()[0]).toMatchObject({ msg: 'object-unavailable', reason: expect.stringContaining(reason) })
  expectProblem(await sendWithBindings({}, 'GET', path), 404, 'not-found')
})

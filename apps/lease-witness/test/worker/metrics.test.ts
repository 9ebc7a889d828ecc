import { expect, test } from 'vitest'
import { freshSlot, leasePath } from '../http/support/client.ts'
import { sendWithBindings } from './support/host.ts'

test('with a dataset, each request writes a data point, which holds no slot, holder or token', async () => {
  const points: unknown[] = []
  const METRICS = { writeDataPoint: (point: unknown) => points.push(point) }
  const path = leasePath(freshSlot())
  const write = { headers: { 'If-Match': '0', 'X-Holder': 'region-a' } }
  await sendWithBindings({ METRICS }, 'PUT', path, write)
  await sendWithBindings({ METRICS }, 'GET', path, { authorization: null })
  await sendWithBindings({ METRICS }, 'GET', '/elsewhere')
  const doubles = [expect.any(Number)]
  expect(points).toEqual([
    { indexes: ['granted'], blobs: ['PUT', '/lease/:slot', 'granted', '200'], doubles },
    { indexes: ['unauthorized'], blobs: ['GET', '/lease/:slot', 'unauthorized', '401'], doubles },
    { indexes: ['not-found'], blobs: ['GET', 'none', 'not-found', '404'], doubles },
  ])
})

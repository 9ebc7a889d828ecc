import { expect, test } from 'vitest'
import { toPayloads } from './notifications.ts'

test('slots share a payload, and a heartbeat has none', () => {
  expect(toPayloads('replica', ['a', 'b\u0000'])).toEqual(['["replica","a","b\\u0000"]'])
  expect(toPayloads('replica', [])).toEqual(['["replica"]'])
})

test('no payload has more than 7,900 bytes, and no slot is lost', () => {
  const slots = Array.from({ length: 200 }, (_, index) => `${index}/${'ä"'.repeat(120)}`)
  const payloads = toPayloads('replica', slots)
  expect(Math.max(...payloads.map(payload => Buffer.byteLength(payload)))).toBeLessThanOrEqual(7_900)
  expect(payloads.flatMap(payload => JSON.parse(payload).slice(1))).toEqual(slots)
})

import { expect, test } from 'vitest'
import { describeReplica, formatGrowth, formatLatest } from './overview.ts'

test.each([
  [[], '', '–'],
  [[null, null], 'ms', '–'],
  [[1, 2, null], '', '2'],
  [[1_234_567], '', '1,234,567'],
  [[0.123456], '/s', '0.12 /s'],
  [[123.456], 'ms', '123 ms'],
  [[12.34], 'ms', '12 ms'],
])('the latest of %j is %s', (values, unit, text) => expect(formatLatest(values, unit)).toBe(text))

test.each([
  [[], '±0'],
  [[null, 5, 5], '±0'],
  [[5, null, 1_205], '+1,200'],
  [[5, 2, null], '−3'],
])('the growth of %j is %s', (values, text) => expect(formatGrowth(values)).toBe(text))

const now = Date.parse('2026-01-31T12:01:00.000Z')
const replica = { lastSeenAt: '2026-01-31T12:00:55.000Z', isReady: true, circuitOpen: false }

test.each([
  [replica, 'ready'],
  [{ ...replica, isReady: false }, 'not ready'],
  [{ ...replica, circuitOpen: true }, 'DNS calls suspended'],
  [{ ...replica, circuitOpen: true, lastSeenAt: '2026-01-31T11:59:00.000Z' }, 'has ended'],
])('%o', (given, text) => expect(describeReplica(given, now).text).toBe(text))

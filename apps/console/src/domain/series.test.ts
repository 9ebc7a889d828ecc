import { expect, test } from 'vitest'
import { formatGrowth, formatLatest } from './series.ts'

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

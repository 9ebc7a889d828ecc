import { expect, test } from 'vitest'
import { formatCount, pickVerb } from './count.ts'

test.each([
  [0, '0 names'],
  [1, '1 name'],
  [2_500, '2,500 names'],
])('%d has its unit', (count, text) => {
  expect(formatCount(count, 'name')).toBe(text)
  expect(pickVerb(count, 'is', 'are')).toBe(count === 1 ? 'is' : 'are')
})

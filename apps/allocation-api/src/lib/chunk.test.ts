import { expect, test } from 'vitest'
import { partsOf } from './chunk.ts'

test.each([
  { sizes: [], expected: [] },
  { sizes: [1, 2, 3], expected: [[1, 2, 3]] },
  { sizes: [5, 5, 1], expected: [[5, 5], [1]] },
  { sizes: [11, 1], expected: [[11], [1]] },
  { sizes: [1, 11, 1], expected: [[1], [11], [1]] },
])('of sizes $sizes, ten at most', ({ sizes, expected }) => {
  expect(partsOf<number>(sizes, size => size, 10)).toEqual(expected)
})

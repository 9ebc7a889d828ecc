import { expect, test } from 'vitest'
import { chunkBySize } from './chunk.ts'

test.each([
  { sizes: [], expected: [] },
  { sizes: [1, 2, 3], expected: [[1, 2, 3]] },
  { sizes: [5, 5, 1], expected: [[5, 5], [1]] },
  { sizes: [11, 1], expected: [[11], [1]] },
  { sizes: [1, 11, 1], expected: [[1], [11], [1]] },
])('sizes $sizes, at most ten per chunk', ({ sizes, expected }) => {
  expect(chunkBySize<number>(sizes, size => size, 10)).toEqual(expected)
})

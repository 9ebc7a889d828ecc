import { expect, test } from 'vitest'
import { taken } from './taken.ts'

test('gives the rows in their order and leaves nothing of them in the result', () => {
  const result = [{ n: 1 }, { n: 2 }]
  expect(taken(result)).toEqual([{ n: 1 }, { n: 2 }])
  expect(result).toEqual([])
})

import { expect, test } from 'vitest'
import { drainRows } from './drain-rows.ts'

test('gives the rows in their order and leaves nothing of them in the result', () => {
  const result = [{ n: 1 }, { n: 2 }]
  expect(drainRows(result)).toEqual([{ n: 1 }, { n: 2 }])
  expect(result).toEqual([])
})

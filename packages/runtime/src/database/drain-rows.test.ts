import { expect, test } from 'vitest'
import { drainRows } from './drain-rows.ts'

test('returns the rows in order and empties the result', () => {
  const result = [{ n: 1 }, { n: 2 }]
  expect(drainRows(result)).toEqual([{ n: 1 }, { n: 2 }])
  expect(result).toEqual([])
})

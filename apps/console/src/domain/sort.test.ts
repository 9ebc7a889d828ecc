import { expect, test } from 'vitest'
import { sortRows, toggleOrder } from './sort.ts'

test.each([
  [
    ['node-10', 'node-2', 'Node-1'],
    ['Node-1', 'node-2', 'node-10'],
  ],
  [
    [10, -1, 2.5, 0],
    [-1, 0, 2.5, 10],
  ],
])('%j are sorted', (values, sorted) => {
  expect(sortRows<string | number>(values, value => value, 'ascending')).toEqual(sorted)
  expect(sortRows<string | number>(values, value => value, 'descending')).toEqual(sorted.toReversed())
})

test('equal values keep their order in both directions', () => {
  for (const direction of ['ascending', 'descending'] as const) {
    expect(sortRows(['a1', 'b', 'a2'], text => text[0] ?? '', direction).join()).toContain('a1,a2')
  }
})

test('a header sorts ascending, descending, and not at all', () => {
  const ascending = toggleOrder({ header: 'other', direction: 'descending' }, 'slot')
  const descending = toggleOrder(ascending, 'slot')
  expect([ascending, descending]).toEqual([
    { header: 'slot', direction: 'ascending' },
    { header: 'slot', direction: 'descending' },
  ])
  expect(toggleOrder(descending, 'slot')).toBe(null)
})

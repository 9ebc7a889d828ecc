import { expect, test } from 'vitest'
import { toStateAfter } from './name-action.ts'

test.each([
  ['active', 'release', 60_000, 'cooling-off'],
  ['active', 'release', 0, 'free'],
  ['reserved', 'release', 60_000, 'free'],
  ['active', 'update', 60_000, 'active'],
  ['cooling-off', 'lift-cool-off', 60_000, 'free'],
] as const)('%s after %s with a cool-off of %d ms is %s', (state, action, coolOffMs, after) => {
  expect(toStateAfter(state, action, coolOffMs)).toBe(after)
})

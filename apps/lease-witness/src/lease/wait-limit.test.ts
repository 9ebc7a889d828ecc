import { expect, test } from 'vitest'
import { findDisplaced } from './wait-limit.ts'

test.each<readonly [rule: string, counts: Record<string, number>, caller: string, displaced: string | undefined]>([
  ['a caller with all waits', { reader: 9 }, 'reader', 'reader'],
  ['another caller has all waits', { reader: 9 }, 'standby', 'reader'],
  ['the caller with the most of several', { standby: 1, reader: 6, other: 2 }, 'standby', 'reader'],
  ['a share above the new one', { standby: 3, reader: 5 }, 'standby', 'reader'],
  ['equal shares with the new one: its own', { standby: 4, reader: 5 }, 'standby', 'standby'],
  ['equal shares: no caller can take from the other', { standby: 4, reader: 4 }, 'reader', 'reader'],
  ['one wait of each other caller', { a: 1, b: 1, c: 1 }, 'standby', undefined],
])('%s', (_, counts, caller, displaced) => {
  expect(findDisplaced(new Map(Object.entries(counts)), caller)).toBe(displaced)
})

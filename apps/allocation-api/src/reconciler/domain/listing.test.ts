import { expect, test } from 'vitest'
import { Listing, MAX_LISTED } from './listing.ts'

const harmless = Array.from({ length: MAX_LISTED + 5 }, (_, index) => index)
const loss = (count: number) => Array.from({ length: count }, (_, index) => -1 - index)

test.each<readonly [what: string, items: readonly number[], listed: readonly number[]]>([
  ['few items, in their order', [1, -1, 2], [1, -1, 2]],
  ['the first of many', harmless, harmless.slice(0, MAX_LISTED)],
  ['a loss after many', [...harmless, -1], [...harmless.slice(0, MAX_LISTED - 1), -1]],
  ['losses before and after many', [-9, ...harmless, -1, -2], [-9, ...harmless.slice(0, MAX_LISTED - 3), -1, -2]],
  ['the first of many losses', [...harmless, ...loss(MAX_LISTED + 5)], loss(MAX_LISTED)],
])('a list shows %s', (_, items, listed) => {
  const listing = new Listing<number>(item => item < 0)
  for (let at = 0; at < items.length; at += 300) listing.add(items.slice(at, at + 300))
  expect(listing.items).toEqual(listed)
  expect(listing.count).toBe(items.length)
})

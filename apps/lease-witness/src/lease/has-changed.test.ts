import { expect, test } from 'vitest'
import { isNews } from './has-changed.ts'
import type { Current } from './lease.ts'
import type { Known } from './precondition.ts'

const NOW = 1_000
const lease = (expiresAt: number): Current => ({
  kind: 'held',
  holder: 'a',
  acquiredAt: 0,
  renewedAt: 0,
  expiresAt,
  generation: 7,
})
const held = lease(NOW + 1)
const expired = lease(NOW)
const released: Current = { kind: 'released', generation: 7 }

test.each<readonly [rule: string, current: Current | undefined, known: Known, news: boolean]>([
  ['held, its generation is known', held, [7], false],
  ['held, its generation is one of those known', held, [6, 7], false],
  ['held, an older generation is known', held, [6], true],
  ['held, a newer generation is known', held, [8], true],
  ['held, nothing is known', held, [], true],
  ['held, whatever there is is known', held, 'any', false],
  ['expired at this moment, its generation is known', expired, [7], true],
  ['expired, whatever there is is known', expired, 'any', true],
  ['expired, another generation is known', expired, [6], true],
  ['released, its generation is known', released, [7], false],
  ['released, another generation is known', released, [6], true],
  ['released, whatever there is is known', released, 'any', false],
  ['never written, and 0 is known', undefined, [0], false],
  ['never written, and 0 is one of those known', undefined, [4, 0], false],
  ['never written, and another generation is known', undefined, [1], true],
  ['never written, and nothing is known', undefined, [], true],
  ['never written: there is nothing that * could stand for', undefined, 'any', true],
])('%s: news %s', (_, current, known, news) => {
  expect(isNews(current, known, NOW)).toBe(news)
})

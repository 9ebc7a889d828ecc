import { describe, expect, it } from 'vitest'
import { checkBound, MIN_GROWTH_CHECK_MS, type Sample } from '../../src/soak/resources.ts'

const bound = { max: 400, growth: { share: 0.25, extra: 20 } }
const series = (length: number, valueAt: (share: number) => number): Sample[] =>
  Array.from({ length: 101 }, (_, i) => ({ at: 5_000 + (i * length) / 100, value: valueAt(i / 100) }))

describe('the bound of a resource', () => {
  it.each<readonly [string, Sample[], RegExp | null]>([
    ['flat', series(MIN_GROWTH_CHECK_MS, () => 150), null],
    ['growth during the warm-up', series(MIN_GROWTH_CHECK_MS, share => (share < 0.25 ? 50 : 150)), null],
    [
      'growth beyond the bound',
      series(MIN_GROWTH_CHECK_MS, share => (share < 0.5 ? 100 : 146)),
      /x grows: median 100 .* 146/,
    ],
    ['continuous growth', series(600_000, share => 100 + 200 * share), /x grows/],
    ['too short to decide', series(MIN_GROWTH_CHECK_MS - 1, share => 100 + 200 * share), null],
    ['above the bound, once', series(1_000, share => (share === 0.5 ? 401 : 100)), /x reached 401, above 400/],
  ])('%s', (_, samples, fault) => {
    const { violations: faults } = checkBound('x', samples, bound)
    if (fault) expect(faults.join()).toMatch(fault)
    else expect(faults).toEqual([])
  })

  it('returns start, median, end and maximum', () => {
    const samples = [3, 9, 4, 5, 1].map((value, at) => ({ at, value }))
    expect(checkBound('x', samples, bound)).toEqual({ start: 3, median: 4, end: 1, max: 9, violations: [] })
  })
})

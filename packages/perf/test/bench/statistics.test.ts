import { describe, expect, it } from 'vitest'
import { percentile, ratiosOf, spreadOf } from '../../src/bench/statistics.ts'

describe('percentile, by nearest rank', () => {
  it.each([
    [[7], 50, 7],
    [[7], 99, 7],
    [[1, 2], 50, 1],
    [[1, 2], 51, 2],
    [[1, 2, 3], 50, 2],
    [[1, 2, 3], 0, 1],
    [[1, 2, 3], 100, 3],
    [Array.from({ length: 100 }, (_, n) => n + 1), 99, 99],
    [Array.from({ length: 101 }, (_, n) => n + 1), 99, 100],
  ])('of %j at %d is %d', (values, percent, expected) => {
    expect(percentile(values, percent)).toBe(expected)
  })

  it('of nothing is no number', () => {
    expect(percentile([], 50)).toBeNaN()
  })
})

describe('spread', () => {
  it.each([
    [[5], { median: 5, min: 5, max: 5 }],
    [[3, 1], { median: 2, min: 1, max: 3 }],
    [[10, 9, 100], { median: 10, min: 9, max: 100 }],
    [[4, 1, 3, 2], { median: 2.5, min: 1, max: 4 }],
  ])('of %j', (values, expected) => {
    expect(spreadOf(values)).toEqual(expected)
  })
})

describe('ratios', () => {
  it.each([
    ['are taken round by round', [10, 30, 20], [20, 20, 20], { median: 1, min: 0.5, max: 1.5 }],
    ['do not see what slowed both down', [100, 10], [200, 20], { median: 0.5, min: 0.5, max: 0.5 }],
  ])('%s', (_, values, baseline, expected) => {
    expect(ratiosOf(values, baseline)).toEqual(expected)
  })

  it('to a round that is missing are no number', () => {
    expect(ratiosOf([1], []).median).toBeNaN()
  })
})

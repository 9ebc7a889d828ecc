import { describe, expect, it } from 'vitest'
import {
  percentile,
  spreadText,
  tableText,
  toFigure,
  toInterval,
  toMegabytes,
  toRatios,
  toSpread,
} from '../../src/shared/figures.ts'

describe('percentile, by nearest rank', () => {
  it.each([
    [[7], 50, 7],
    [[1, 2], 51, 2],
    [[1, 2, 3], 0, 1],
    [[1, 2, 3], 100, 3],
    [Array.from({ length: 100 }, (_, n) => n + 1), 99, 99],
    [Array.from({ length: 101 }, (_, n) => n + 1), 99, 100],
  ])('of %j at %d is %d', (values, percent, expected) => {
    expect(percentile(values, percent)).toBe(expected)
  })

  it('of an empty list is NaN', () => {
    expect(percentile([], 50)).toBeNaN()
  })
})

describe('spread', () => {
  it.each([
    [[10, 9, 100], { median: 10, min: 9, max: 100 }],
    [[4, 1, 3, 2], { median: 2.5, min: 1, max: 4 }],
  ])('of %j', (values, expected) => {
    expect(toSpread(values)).toEqual(expected)
  })
})

describe('ratios', () => {
  it.each([
    ['are calculated per round', [10, 30, 20], [20, 20, 20], { median: 1, min: 0.5, max: 1.5 }],
    ['are not affected by a slowdown of both', [100, 10], [200, 20], { median: 0.5, min: 0.5, max: 0.5 }],
  ])('%s', (_, values, baseline, expected) => {
    expect(toSpread(toRatios(values, baseline))).toEqual(expected)
  })

  it('have a 95 % interval, whose inverse is the interval of the inverse ratios', () => {
    const { mean, low, high } = toInterval([0.9, 1, 1.1, 1, 0.95, 1.05, 1.02, 0.98, 1])
    expect([mean, low, high]).toEqual([expect.closeTo(0.9986, 4), expect.closeTo(0.9558, 4), expect.closeTo(1.0433, 4)])
    const inverse = toInterval([0.9, 1, 1.1, 1, 0.95, 1.05, 1.02, 0.98, 1].map(ratio => 1 / ratio))
    expect([inverse.low, inverse.high]).toEqual([expect.closeTo(1 / high), expect.closeTo(1 / low)])
    expect(toInterval([2, 2, 2])).toEqual({ mean: expect.closeTo(2), low: expect.closeTo(2), high: expect.closeTo(2) })
    expect(toInterval([2])).toEqual({ mean: expect.closeTo(2), low: Number.NaN, high: Number.NaN })
  })
})

describe('figures', () => {
  it.each([
    [0, '0'],
    [0.0423, '0.04'],
    [1.005, '1.00'],
    [12.34, '12.3'],
    [1234, '1234'],
    [12_345.6, '12 346'],
    [1_234_567, '1 234 567'],
    [Number.NaN, '?'],
  ])('%d is shown as %s', (value, expected) => {
    expect(toFigure(value)).toBe(expected)
  })

  it('have their spread and their unit', () => {
    expect(spreadText({ median: 2, min: 1.5, max: 30 })).toBe('2.00 (1.50–30.0)')
    expect(toMegabytes(52_300_000)).toBe('52.3 MB')
  })
})

describe('a table', () => {
  it('is Markdown with aligned columns', () => {
    const text = tableText({
      columns: [
        { title: 'target', align: 'left' },
        { title: 'ops/s', align: 'right' },
        { title: 'note', align: 'left' },
      ],
      rows: [
        ['API', '12 345', ''],
        ['Hono floor', '7', 'a | b'],
      ],
    })
    expect(text.split('\n')).toEqual([
      '| target     |  ops/s | note   |',
      '|------------|-------:|--------|',
      '| API        | 12 345 |        |',
      '| Hono floor |      7 | a \\| b |',
    ])
  })
})

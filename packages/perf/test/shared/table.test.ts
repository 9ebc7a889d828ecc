import { describe, expect, it } from 'vitest'
import { spreadText, tableText, toFigure, toMegabytes } from '../../src/shared/table.ts'

describe('figures', () => {
  it.each([
    [0, '0'],
    [0.0423, '0.04'],
    [1.005, '1.00'],
    [9.994, '9.99'],
    [12.34, '12.3'],
    [123.4, '123'],
    [1234, '1234'],
    [12_345.6, '12 346'],
    [1_234_567, '1 234 567'],
    [-2.345678, '-2.35'],
    [Number.NaN, '?'],
    [Number.POSITIVE_INFINITY, '?'],
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

  it('without rows is only its header', () => {
    expect(tableText({ columns: [{ title: 'a', align: 'right' }], rows: [] })).toBe('|   a |\n|----:|')
  })
})

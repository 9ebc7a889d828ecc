import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { createTable, fitWidths, formatFields } from './table.ts'
import { createPaint, toWidth } from './text.ts'

const paint = createPaint(false)

describe('fitWidths', () => {
  test.each([
    ['no limit', [30, 5], null, [30, 5]],
    ['enough space', [30, 5], 37, [30, 5]],
    ['the widest column gives', [30, 5], 27, [20, 5]],
    ['equal columns give the same', [30, 30], 42, [20, 20]],
    ['columns over go to the first', [30, 30], 43, [21, 20]],
    ['no column below the minimum', [30, 30], 10, [8, 8]],
    ['a narrow column stays', [3, 50, 40], 60, [3, 27, 26]],
  ])('%s', (_, natural, available, expected) => expect(fitWidths(natural, available)).toEqual(expected))

  test('a firm column keeps its width, and the others give', () => {
    expect(fitWidths([36, 30, 20], 80, [true, false, false])).toEqual([36, 20, 20])
    expect(fitWidths([36, 30], 30, [true, false])).toEqual([36, 8])
  })

  test('every row fits every width of a terminal that has room for the smallest columns', () => {
    for (const natural of [
      [5, 5, 5],
      [90, 12, 40, 9],
      [200, 200, 200, 1],
      [8, 9, 10, 11],
    ]) {
      const smallest = natural.reduce((sum, width) => sum + Math.min(width, 8), 0) + 2 * (natural.length - 1)
      for (let available = smallest; available < 300; available += 1) {
        const widths = fitWidths(natural, available)
        expect(widths.reduce((sum, width) => sum + width, 0) + 2 * (widths.length - 1)).toBeLessThanOrEqual(available)
        expect(widths.every((width, i) => width <= (natural[i] ?? 0))).toBe(true)
      }
    }
  })
})

interface Row {
  readonly name: string
  readonly note?: string
}
const columns = [
  { header: 'NAME', value: ({ name }: Row) => name },
  { header: 'NOTE', value: ({ note }: Row) => note },
]

describe('createTable', () => {
  test('aligns columns, shows a dash for nothing and leaves no space at the end', () => {
    const table = createTable(columns, { width: null, paint })
    expect(table([{ name: 'acme', note: 'x' }, { name: 'a' }])).toEqual(['NAME  NOTE', 'acme  x', 'a     -'])
  })

  test('a later batch has no header and the widths of the first', () => {
    const table = createTable(columns, { width: null, paint })
    table([{ name: 'acme' }])
    expect(table([{ name: 'b', note: 'y' }])).toEqual(['b     y'])
  })

  test('no line is wider than the terminal, also with wide characters', () => {
    const table = createTable(columns, { width: 30, paint })
    const lines = table([{ name: '東京'.repeat(20), note: 'n'.repeat(50) }])
    expect(lines.map(toWidth).every(width => width <= 30)).toBe(true)
    expect(lines[1]).toContain('…')
  })

  test('colour does not change the widths', () => {
    const coloured = columns.map(column => ({ ...column, colour: () => 'green' as const }))
    const lines = createTable(coloured, { width: null, paint: createPaint(true) })([{ name: 'a', note: 'b' }])
    expect(lines.map(stripVTControlCharacters)).toEqual(['NAME  NOTE', 'a     b'])
  })

  test('control characters of a service are escaped', () => {
    expect(createTable(columns, { width: null, paint })([{ name: '\u001b]0;title\u0007' }])[1]).toContain(
      '\\x1b]0;title\\x07',
    )
  })
})

test('fields without a value are left out, and the others are aligned', () => {
  expect(
    formatFields(
      [
        ['name', 'acme'],
        ['created by', ''],
        ['address', undefined],
        ['generation', 0],
      ],
      paint,
    ),
  ).toEqual(['name:        acme', 'generation:  0'])
})

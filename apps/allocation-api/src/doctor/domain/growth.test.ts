import { expect, test } from 'vitest'
import { judgeGrowth, type Retention, type TableFacts } from './growth.ts'

const HOUR_MS = 3_600_000
const table = (newest: TableFacts['newest'], rows = 0): TableFacts => ({
  name: 'history',
  rows,
  bytes: 2_000_000,
  ...(newest ? { newest } : {}),
})
const judge = (facts: TableFacts, ms: number | null = null) =>
  judgeGrowth([facts], new Map<string, Retention>([['history', ['KEEP', ms]]])).map(({ text }) => text)

test.each<readonly [string, TableFacts, string]>([
  [
    'a table of ten days',
    table({ rows: 1_000, ageMs: 240 * HOUR_MS, isAll: true }),
    '1,000 rows, 2.0 MB; it grows by 100 rows or 0.2 MB a day',
  ],
  [
    'a table of an hour',
    table({ rows: 1_000, ageMs: HOUR_MS, isAll: true }),
    '1,000 rows, 2.0 MB; it grows by 1,000 rows or 2.0 MB a day',
  ],
  [
    'a flood',
    table({ rows: 10_000, ageMs: HOUR_MS, isAll: false }, 20_000),
    '20,000 rows, 2.0 MB; it grows by 240,000 rows or 24.0 MB a day',
  ],
  [
    'a table that was not analysed',
    table({ rows: 10_000, ageMs: 48 * HOUR_MS, isAll: false }),
    '10,000 rows, 2.0 MB; it grows by 5,000 rows or 1.0 MB a day',
  ],
  ['an empty table', table({ rows: 0, ageMs: 0, isAll: true }), '0 rows, 2.0 MB; it grows by 0 rows or 0.0 MB a day'],
])('%s', (_, facts, text) => {
  expect(judge(facts)).toEqual([`${text}; rows are kept indefinitely, unless you set KEEP`])
  expect(judge(facts, 240 * HOUR_MS)).toEqual([`${text}; rows are kept for 10 days (KEEP)`])
})

test('other tables are one finding, the largest first', () => {
  const others = [table(undefined, 5), { ...table(undefined), name: 'larger', bytes: 3_000_000 }]
  expect(judgeGrowth(others, new Map()).map(({ text }) => text)).toEqual([
    'larger 0 rows, 3.0 MB; history 5 rows, 2.0 MB',
  ])
})

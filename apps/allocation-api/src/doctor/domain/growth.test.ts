import { expect, test } from 'vitest'
import { judgeGrowth } from './growth.ts'

const DAY_MS = 86_400_000

test.each([
  ['of ten days', 1_000, 1_000, 10, 'each day 100 rows, 0.2 MB'],
  ['of an hour', 1_000, 1_000, 1 / 24, 'each day 1,000 rows, 2.0 MB'],
  ['with a flood', 20_000, 10_000, 1 / 24, 'each day 240,000 rows, 24.0 MB'],
  ['that was not analysed', 0, 10_000, 2, 'each day 5,000 rows, 1.0 MB'],
  ['without rows', 0, 0, null, 'each day 0 rows, 0.0 MB'],
] as const)('the growth of a table %s', (_, rows, newest, days, growth) => {
  const history = { name: 'history', rows, bytes: 2_000_000, newest, ageMs: days === null ? null : days * DAY_MS }
  const other = { name: 'names', rows: 5, bytes: 1_000_000, newest: null, ageMs: null }
  const judge = (historyMs: number | null) =>
    judgeGrowth([other, history], { historyMs, deploymentLogMs: 0 }).map(({ text }) => text)
  const text = `${Math.max(rows, newest).toLocaleString('en-US')} rows, 2.0 MB; ${growth}; rows are kept`
  expect(judge(null)).toEqual([`${text} indefinitely, unless you set PDM_HISTORY_RETENTION`, 'names 5 rows, 1.0 MB'])
  expect(judge(30 * DAY_MS)[0]).toBe(`${text} for 30 days (PDM_HISTORY_RETENTION)`)
})

import { type Finding, good } from './report.ts'

export interface TableFacts {
  readonly name: string
  /** Estimated. */
  readonly rows: number
  /** With its indexes. */
  readonly bytes: number
  /** Of a table that grows with use: how many of its newest rows were read. Null: another table. */
  readonly newest: number | null
  /** Milliseconds since the oldest of them; null: there is none. */
  readonly ageMs: number | null
}

export interface Retention {
  readonly historyMs: number | null
  readonly deploymentLogMs: number | null
}

/** Enough to see the rate of a table, whatever its size. */
export const NEWEST_ROWS = 10_000
const DAY_MS = 86_400_000

const toText = (rows: number, bytes: number): string =>
  `${Math.round(rows).toLocaleString('en-US')} rows, ${(bytes / 1_000_000).toFixed(1)} MB`

/** One finding for each table that grows with use, and one for all others. */
export const judgeGrowth = (tables: readonly TableFacts[], retention: Retention): readonly Finding[] => {
  const growing = tables.flatMap(({ name, rows, bytes, newest, ageMs }) => {
    if (newest === null) return []
    const isLog = name === 'deployment_log_lines'
    const variable = isLog ? 'PDM_DEPLOYMENT_LOG_RETENTION' : 'PDM_HISTORY_RETENTION'
    const ms = isLog ? retention.deploymentLogMs : retention.historyMs
    // A table younger than a day may grow no further; the newest rows of a large one show its rate at any age.
    const daily = (newest * DAY_MS) / Math.max(ageMs ?? 0, newest < NEWEST_ROWS ? DAY_MS : 1)
    const all = Math.max(rows, newest)
    const kept = ms === null ? `indefinitely, unless you set ${variable}` : `for ${ms / DAY_MS} days (${variable})`
    const growth = toText(daily, (daily * bytes) / Math.max(all, 1))
    return [good(`table ${name}`, `${toText(all, bytes)}; each day ${growth}; rows are kept ${kept}`)]
  })
  const others = tables.filter(({ newest }) => newest === null).toSorted((a, b) => b.bytes - a.bytes)
  return [
    ...growing,
    good('other tables', others.map(({ name, rows, bytes }) => `${name} ${toText(rows, bytes)}`).join('; ')),
  ]
}

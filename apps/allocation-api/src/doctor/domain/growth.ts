import { type Finding, good } from './report.ts'

export interface TableFacts {
  readonly name: string
  /** Estimated. */
  readonly rows: number
  /** With its indexes. */
  readonly bytes: number
  /** Of a table that grows with use. */
  readonly newest?: {
    readonly rows: number
    /** Milliseconds since the oldest of them. */
    readonly ageMs: number
    /** They are the whole table. */
    readonly isAll: boolean
  }
}

/** The variable that limits a table, and its value in milliseconds; null: it is not set. */
export type Retention = readonly [variable: string, ms: number | null]

const DAY_MS = 86_400_000

const toCount = (rows: number): string => Math.round(rows).toLocaleString('en-US')
const toMegabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`

/** Rows per day. What is younger than a day may be all of that day, but a full sample shows the rate itself. */
const toDailyRows = ({ rows, ageMs, isAll }: NonNullable<TableFacts['newest']>): number =>
  (rows * DAY_MS) / Math.max(ageMs, isAll ? DAY_MS : 1)

/** One finding for each table that grows with use, and one for all others. */
export const judgeGrowth = (
  tables: readonly TableFacts[],
  retentions: ReadonlyMap<string, Retention>,
): readonly Finding[] => {
  const growing = tables.flatMap(({ name, rows, bytes, newest }) => {
    const retention = retentions.get(name)
    if (newest === undefined || retention === undefined) return []
    const [variable, ms] = retention
    const exact = newest.isAll ? newest.rows : Math.max(rows, newest.rows)
    const daily = toDailyRows(newest)
    const kept =
      ms === null ? `indefinitely, unless you set ${variable}` : `for ${toCount(ms / DAY_MS)} days (${variable})`
    const growth = `it grows by ${toCount(daily)} rows or ${toMegabytes(exact === 0 ? 0 : (daily * bytes) / exact)} a day`
    return [good(`table ${name}`, `${toCount(exact)} rows, ${toMegabytes(bytes)}; ${growth}; rows are kept ${kept}`)]
  })
  const others = tables
    .filter(({ newest }) => newest === undefined)
    .toSorted((a, b) => b.bytes - a.bytes)
    .map(({ name, rows, bytes }) => `${name} ${toCount(rows)} rows, ${toMegabytes(bytes)}`)
  return others.length === 0 ? growing : [...growing, good('other tables', others.join('; '))]
}

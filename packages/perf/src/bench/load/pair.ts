import { type Interval, toInterval, toRatios, toSpread } from '../../shared/stats.ts'
import { left, right, spreadText, type Table } from '../../shared/table.ts'
import { type Comparison, pickField, type Run } from './compare.ts'

const MIN_ROUNDS_FOR_INTERVAL = 2

const intervalText = ({ mean, low, high }: Interval, rounds: number): string =>
  rounds < MIN_ROUNDS_FOR_INTERVAL ? 'n/a' : `${mean.toFixed(3)} (${low.toFixed(3)}–${high.toFixed(3)})`

/** Two targets under one load: ratios of the first to the second. */
export interface ComparedLoad {
  readonly users: number
  /** The rounds in which both targets completed operations. The others have no ratio. */
  readonly rounds: number
  readonly perSecond: Interval
  readonly p50: Interval
  readonly p99: Interval
}

export const toComparedLoad = ({ users, runs: [first = [], second = []] }: Comparison): ComparedLoad => {
  const isMeasured = (_: Run, round: number) => Boolean(first[round]?.operations && second[round]?.operations)
  const [ours, theirs] = [first.filter(isMeasured), second.filter(isMeasured)]
  const interval = (field: Parameters<typeof pickField>[1]) =>
    toInterval(toRatios(pickField(ours, field), pickField(theirs, field)))
  return {
    users,
    rounds: ours.length,
    perSecond: interval('perSecond'),
    p50: interval('p50Ms'),
    p99: interval('p99Ms'),
  }
}

/** One row for each load: the rates of both targets, and the ratios with their 95 % confidence intervals. */
export const pairTable = (
  title: string,
  [first, second]: readonly [string, string],
  comparisons: readonly Comparison[],
): Table => {
  const perSecond = (runs: readonly Run[] = []) => spreadText(toSpread(pickField(runs, 'perSecond')))
  return {
    columns: [
      left(title),
      ...[
        'rounds',
        `${first}, ops/s`,
        `${second}, ops/s`,
        `${first} / ${second}: ops/s (95 %)`,
        'p50 (95 %)',
        'p99 (95 %)',
      ].map(right),
    ],
    rows: comparisons.map(comparison => {
      const load = toComparedLoad(comparison)
      const ratios = [load.perSecond, load.p50, load.p99].map(interval => intervalText(interval, load.rounds))
      const [ours, theirs] = comparison.runs
      return [`${load.users} virtual users`, String(load.rounds), perSecond(ours), perSecond(theirs), ...ratios]
    }),
  }
}

import { type Interval, toInterval, toRatios, toSpread } from '../../shared/stats.ts'
import { left, right, spreadText, type Table, toFigure } from '../../shared/table.ts'
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
  /** Of the CPU time per operation; null: unknown. */
  readonly cpu: Interval | null
}

/** The rounds in which the CPU time of the process is known, or none. */
const cpuOf = (runs: readonly Run[]): readonly number[] => {
  const known = runs.flatMap(({ cost }) => cost?.totalUs ?? [])
  return known.length === runs.length ? known : []
}

export const toComparedLoad = ({ users, runs: [first = [], second = []] }: Comparison): ComparedLoad => {
  const isMeasured = (_: Run, round: number) => Boolean(first[round]?.operations && second[round]?.operations)
  const [ours, theirs] = [first.filter(isMeasured), second.filter(isMeasured)]
  const interval = (field: Parameters<typeof pickField>[1]) =>
    toInterval(toRatios(pickField(ours, field), pickField(theirs, field)))
  const [ourCpu, theirCpu] = [cpuOf(ours), cpuOf(theirs)]
  return {
    users,
    rounds: ours.length,
    perSecond: interval('perSecond'),
    p50: interval('p50Ms'),
    p99: interval('p99Ms'),
    cpu: ourCpu.length > 0 && theirCpu.length > 0 ? toInterval(toRatios(ourCpu, theirCpu)) : null,
  }
}

/** One row for each load: the rates of both targets, and the ratios with their 95 % confidence intervals. */
export const pairTable = (
  title: string,
  [first, second]: readonly [string, string],
  comparisons: readonly Comparison[],
): Table => {
  const withCpu = comparisons.some(comparison => toComparedLoad(comparison).cpu !== null)
  const cpuTitles = withCpu ? [`${first}, CPU µs`, `${second}, CPU µs`, 'CPU per request (95 %)'] : []
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
        ...cpuTitles,
      ].map(right),
    ],
    rows: comparisons.map(comparison => {
      const load = toComparedLoad(comparison)
      const ratios = [load.perSecond, load.p50, load.p99].map(interval => intervalText(interval, load.rounds))
      const [ours, theirs] = comparison.runs
      const cpu = withCpu
        ? [
            ...[ours, theirs].map(runs => toFigure(toSpread(cpuOf(runs ?? [])).median)),
            load.cpu ? intervalText(load.cpu, load.rounds) : '?',
          ]
        : []
      return [`${load.users} virtual users`, String(load.rounds), perSecond(ours), perSecond(theirs), ...ratios, ...cpu]
    }),
  }
}

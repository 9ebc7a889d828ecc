import { setTimeout as sleep } from 'node:timers/promises'
import { readCpuUs, readMemory } from '@pool/test-kit/processes.ts'
import { progress } from '../../shared/cli.ts'
import {
  type Interval,
  left,
  percentile,
  right,
  spreadText,
  type Table,
  toFigure,
  toInterval,
  toRatios,
  toSpread,
} from '../../shared/figures.ts'
import type { Timing } from '../options.ts'
import type { Target, VirtualUser } from './target.ts'

export interface Measurement {
  /** Successful operations per second that ended within the time. */
  readonly perSecond: number
  /** Milliseconds from the request to the response. */
  readonly p50Ms: number
  readonly p99Ms: number
  readonly operations: number
  readonly problems: ReadonlyMap<string, number>
}

/**
 * Each virtual user starts its next operation when its last one has ended. Operations in flight at the end are awaited.
 * Their latencies count, because leaving them out would leave out the slow ones; the throughput does not include them.
 */
export const runClosedLoop = async (users: readonly VirtualUser[], seconds: number): Promise<Measurement> => {
  const latencies: number[] = []
  const problems = new Map<string, number>()
  const started = performance.now()
  let until = started + seconds * 1_000
  let inTime = 0

  const work = async (operate: VirtualUser): Promise<void> => {
    for (let begun = performance.now(); begun < until; begun = performance.now()) {
      const operation = operate()
      if (!operation) {
        // With fewer users than requested, the rest of the time would measure something else.
        until = begun
        return
      }
      const problem = await operation
      const ended = performance.now()
      latencies.push(ended - begun)
      if (problem !== null) {
        problems.set(problem, (problems.get(problem) ?? 0) + 1)
        // A user that fails immediately would spin.
        await sleep(10)
      } else if (ended <= until) inTime += 1
    }
  }

  await Promise.all(users.map(work))
  const ascending = Float64Array.from(latencies).sort()
  return {
    perSecond: inTime / ((until - started) / 1_000),
    p50Ms: percentile(ascending, 50),
    p99Ms: percentile(ascending, 99),
    operations: latencies.length,
    problems,
  }
}

/** One round of a target. NaN: unknown. */
export interface Run extends Measurement {
  /** CPU time of the process for an operation, user and system, in microseconds. */
  readonly cpuUs: number
  /** Memory of the process at the end of the round. */
  readonly residentBytes: number
}

/** Everything that was measured with one number of virtual users. */
export interface Comparison {
  readonly load: string
  readonly users: number
  /** The names of the targets. The first one is the numerator of every ratio. */
  readonly names: readonly string[]
  /** For each target, in order, its rounds. */
  readonly runs: readonly (readonly Run[])[]
}

/** One run of a target under load. */
export const runOnce = async (target: Target, users: number, seconds: number): Promise<Run> => {
  await target.prepare?.()
  using opened = await target.open(users)
  const readUs = () => (target.pid === undefined ? null : readCpuUs(target.pid)) ?? Number.NaN
  const before = readUs()
  const measured = await runClosedLoop(opened.users, seconds)
  const cpuUs = (readUs() - before) / measured.operations
  const memory = target.pid === undefined ? null : readMemory(target.pid)
  return { ...measured, cpuUs, residentBytes: memory?.residentBytes ?? Number.NaN }
}

/**
 * Interleaves the targets round by round, so that changes of the machine over time affect all of them. Every other round
 * runs in reverse order, so that the after-effects of one target do not always affect the same target.
 */
export const compare = async (
  load: string,
  loads: readonly number[],
  targets: readonly Target[],
  { rounds, seconds, warmUpSeconds }: Timing,
): Promise<Comparison[]> => {
  const comparisons: Comparison[] = []
  for (const users of loads) {
    progress(`${load}: ${users} virtual users, warming up`)
    // In runs as long as a round, because a target prepares itself for one.
    const warmUpRuns = Math.ceil(warmUpSeconds / seconds)
    for (const target of targets) {
      for (let run = 0; run < warmUpRuns; run += 1) await runOnce(target, users, seconds)
    }
    const runs: Run[][] = targets.map(() => [])
    for (let round = 1; round <= rounds; round += 1) {
      progress(`${load}: ${users} virtual users, round ${round} of ${rounds}`)
      const order = [...targets.entries()]
      for (const [index, target] of round % 2 === 1 ? order : order.reverse()) {
        runs[index]?.push(await runOnce(target, users, seconds))
      }
    }
    comparisons.push({ load, users, names: targets.map(({ name }) => name), runs })
  }
  return comparisons
}

/** Unexpected responses and other errors, with their targets and loads. */
export const listErrors = ({ load, users, names, runs }: Comparison): string[] =>
  runs.flatMap((rounds, index) => {
    const prefix = `${names[index]}, ${load}, ${users} virtual users`
    const empty = rounds.filter(run => run.operations === 0).map(() => `${prefix}: a round without operations`)
    const problems = rounds.flatMap(run => Array.from(run.problems, ([what, count]) => `${prefix}: ${count} × ${what}`))
    return [...empty, ...problems]
  })

const intervalText = ({ mean, low, high }: Interval): string =>
  Number.isNaN(low) ? toFigure(mean) : `${mean.toFixed(3)} (${low.toFixed(3)}–${high.toFixed(3)})`

const RATIOS = ['perSecond', 'p50Ms', 'p99Ms', 'cpuUs'] as const

/** Figures are medians over the rounds. Ratios are geometric means over the rounds, with their 95 % confidence intervals. */
export const comparisonTable = (comparisons: readonly Comparison[]): Table => ({
  columns: [
    left('load'),
    right('virtual users'),
    left('target'),
    ...['ops/s', 'p50 ms', 'p99 ms', 'CPU µs', 'MB'].map(right),
    ...[`${comparisons[0]?.names[0]} / this: ops/s (95 %)`, 'p50', 'p99', 'CPU'].map(right),
  ],
  rows: comparisons.flatMap(({ load, users, names, runs }) =>
    runs.map((rounds, index) => {
      const spread = (toValue: (run: Run) => number) => toSpread(rounds.map(toValue))
      const ratio = (field: (typeof RATIOS)[number]) =>
        toInterval(
          toRatios(
            (runs[0] ?? []).map(run => run[field]),
            rounds.map(run => run[field]),
          ),
        )
      const cpu = spread(({ cpuUs }) => cpuUs).median
      const memory = spread(({ residentBytes }) => residentBytes / 1e6).median
      return [
        ...(index === 0 ? [load, String(users)] : ['', '']),
        names[index] ?? '',
        spreadText(spread(({ perSecond }) => perSecond)),
        spreadText(spread(({ p50Ms }) => p50Ms)),
        spreadText(spread(({ p99Ms }) => p99Ms)),
        ...[cpu, memory].map(value => (Number.isNaN(value) ? '' : toFigure(value))),
        ...RATIOS.map(field => (index === 0 || Number.isNaN(ratio(field).mean) ? '' : intervalText(ratio(field)))),
      ]
    }),
  ),
})

import { progress } from '../../shared/cli.ts'
import { type Spread, toRatios, toSpread } from '../../shared/stats.ts'
import { left, right, spreadText, type Table, toFigure } from '../../shared/table.ts'
import type { Timing } from '../options.ts'
import { type Measurement, runClosedLoop } from './closed-loop.ts'
import { type Cost, startCost } from './cost.ts'
import type { Target } from './target.ts'

export interface Run extends Measurement {
  /** The increase of the target's counters per operation. */
  readonly perOperation: Readonly<Record<string, number>>
  /** Null: unknown. */
  readonly cost: Cost | null
}

/** Everything that was measured with one number of virtual users. */
export interface Comparison {
  readonly users: number
  /** For each target, in order, its rounds. */
  readonly runs: readonly (readonly Run[])[]
}

export interface Plan {
  /** Begins the lines of progress. */
  readonly name: string
  /** Lease slots under load; absent: the load is not on slots. */
  readonly slots?: number
  readonly users: readonly number[]
  readonly timing: Timing
}

/** One run of a target under load. */
export const runOnce = async (target: Target, count: number, seconds: number): Promise<Run> => {
  await target.prepare?.()
  using opened = await target.open(count)
  const before = await target.counters?.()
  const stopCost = await startCost(target.pid)
  const measured = await runClosedLoop(opened.users, seconds)
  const cost = await stopCost(measured.operations)
  const after = await target.counters?.()
  const perOperation = Object.fromEntries(
    Object.entries(after ?? {}).map(([name, value]) => [name, (value - (before?.[name] ?? 0)) / measured.operations]),
  )
  return { ...measured, perOperation, cost }
}

/**
 * Interleaves the targets round by round, so that changes of the machine over time affect all of them. Every other round
 * runs in reverse order, so that the after-effects of one target do not always affect the same target.
 */
export const compare = async (
  targets: readonly Target[],
  { name, users: loads, timing }: Plan,
): Promise<Comparison[]> => {
  const { rounds, seconds, warmUpSeconds } = timing
  const comparisons: Comparison[] = []
  for (const users of loads) {
    progress(`${name}: ${users} virtual users, warming up`)
    // In runs as long as a round, because a target prepares itself for one.
    const warmUpRuns = Math.ceil(warmUpSeconds / seconds)
    for (const target of targets) {
      for (let run = 0; run < warmUpRuns; run += 1) await runOnce(target, users, seconds)
    }
    const runs: Run[][] = targets.map(() => [])
    for (let round = 1; round <= rounds; round += 1) {
      progress(`${name}: ${users} virtual users, round ${round} of ${rounds}`)
      const order = [...targets.entries()]
      for (const [index, target] of round % 2 === 1 ? order : order.reverse()) {
        runs[index]?.push(await runOnce(target, users, seconds))
      }
    }
    comparisons.push({ users, runs })
  }
  return comparisons
}

/** The figures of one target under one load. */
export interface TargetFigures {
  readonly name: string
  readonly perSecond: Spread
  readonly p50Ms: Spread
  readonly p99Ms: Spread
  readonly operations: number
  readonly perOperation: Readonly<Record<string, Spread>>
  /** The figures of the first target divided by these; null for the first target. */
  readonly ratio: { readonly perSecond: Spread; readonly p50: Spread; readonly p99: Spread } | null
}

type RunField = 'perSecond' | 'p50Ms' | 'p95Ms' | 'p99Ms'
export const pickField = (runs: readonly Run[], field: RunField): number[] => runs.map(run => run[field])

const toFigures = (name: string, runs: readonly Run[], first: readonly Run[]): TargetFigures => {
  const ratio = (field: RunField) => toSpread(toRatios(pickField(first, field), pickField(runs, field)))
  const counters = Object.keys(runs[0]?.perOperation ?? {})
  return {
    name,
    perSecond: toSpread(pickField(runs, 'perSecond')),
    p50Ms: toSpread(pickField(runs, 'p50Ms')),
    p99Ms: toSpread(pickField(runs, 'p99Ms')),
    operations: runs.reduce((sum, run) => sum + run.operations, 0),
    perOperation: Object.fromEntries(
      counters.map(counter => [counter, toSpread(runs.map(run => run.perOperation[counter] ?? Number.NaN))]),
    ),
    ratio: runs === first ? null : { perSecond: ratio('perSecond'), p50: ratio('p50Ms'), p99: ratio('p99Ms') },
  }
}

/** `runs` are in the order of `names`. The first target is the numerator of every ratio. */
export const summarize = (names: readonly string[], { runs }: Comparison): TargetFigures[] =>
  runs.map((rounds, index) => toFigures(names[index] ?? '', rounds, runs[0] ?? []))

export const listErrors = (names: readonly string[], where: string, { runs }: Comparison): string[] =>
  runs.flatMap((rounds, index) => {
    const prefix = `${names[index]}, ${where}`
    const empty = rounds.filter(run => run.operations === 0).map(() => `${prefix}: a round without operations`)
    const problems = rounds.flatMap(run => Array.from(run.problems, ([what, count]) => `${prefix}: ${count} × ${what}`))
    return [...empty, ...problems]
  })

/** The figures of all targets under one load. `slots` only if the sections vary them. */
export interface Load {
  readonly slots?: number
  readonly users: number
  readonly targets: readonly TargetFigures[]
}

export interface LoadResults {
  readonly comparisons: readonly Comparison[]
  readonly loads: readonly Load[]
  readonly errors: readonly string[]
}

/** Compares the targets and summarizes their rounds. */
export const measureLoads = async (targets: readonly Target[], plan: Plan): Promise<LoadResults> => {
  const names = targets.map(({ name }) => name)
  const comparisons = await compare(targets, plan)
  return {
    comparisons,
    loads: comparisons.map(comparison => ({
      ...(plan.slots === undefined ? {} : { slots: plan.slots }),
      users: comparison.users,
      targets: summarize(names, comparison),
    })),
    errors: comparisons.flatMap(comparison =>
      listErrors(names, `${plan.name}, ${comparison.users} virtual users`, comparison),
    ),
  }
}

/** The cells of a target: its name, its figures, and the ratios of the first target to it. */
export const targetCells = ({ name, perSecond, p50Ms, p99Ms, ratio }: TargetFigures): string[] => [
  name,
  ...[perSecond, p50Ms, p99Ms].map(spreadText),
  ...(ratio ? [spreadText(ratio.perSecond), toFigure(ratio.p50.median), toFigure(ratio.p99.median)] : ['', '', '']),
]

/** One row for each target. The first one of a load has the slots, if any, and the virtual users. */
export const loadTable = (loads: readonly Load[]): Table => {
  const withSlots = loads.some(({ slots }) => slots !== undefined)
  const toLabels = ({ slots, users }: Load) => (withSlots ? [String(slots), String(users)] : [String(users)])
  return {
    columns: [
      ...(withSlots ? [right('slots')] : []),
      right('virtual users'),
      left('target'),
      ...['ops/s', 'p50 ms', 'p99 ms', `${loads[0]?.targets[0]?.name} / this: ops/s`, 'p50', 'p99'].map(right),
    ],
    rows: loads.flatMap(load =>
      load.targets.map((figures, index) => [
        ...toLabels(load).map(label => (index === 0 ? label : '')),
        ...targetCells(figures),
      ]),
    ),
  }
}

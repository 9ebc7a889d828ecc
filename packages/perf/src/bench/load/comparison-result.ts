import { figure, spread } from '../report/numbers.ts'
import type { Column, Table } from '../report/table.ts'
import type { SectionResult } from '../section.ts'
import { ratiosOf, type Spread, spreadOf } from '../statistics.ts'
import type { Comparison, Run } from './compare.ts'

/** What a comparison says of one subject. */
export interface SubjectFigures {
  readonly name: string
  readonly perSecond: Spread
  readonly p50Ms: Spread
  readonly p99Ms: Spread
  readonly operations: number
  readonly perOperation: Readonly<Record<string, Spread>>
  /** The first subject's figure for one of this one; null for the first itself. */
  readonly ratio: { readonly perSecond: Spread; readonly p50: Spread; readonly p99: Spread } | null
}

const summarise = (name: string, runs: readonly Run[], first: readonly Run[]): SubjectFigures => {
  const column = (rounds: readonly Run[], of: 'perSecond' | 'p50Ms' | 'p99Ms') => rounds.map(run => run[of])
  const ratio = (of: 'perSecond' | 'p50Ms' | 'p99Ms') => ratiosOf(column(first, of), column(runs, of))
  const counters = Object.keys(runs[0]?.perOperation ?? {})
  return {
    name,
    perSecond: spreadOf(column(runs, 'perSecond')),
    p50Ms: spreadOf(column(runs, 'p50Ms')),
    p99Ms: spreadOf(column(runs, 'p99Ms')),
    operations: runs.reduce((sum, run) => sum + run.operations, 0),
    perOperation: Object.fromEntries(
      counters.map(counter => [counter, spreadOf(runs.map(run => run.perOperation[counter] ?? Number.NaN))]),
    ),
    ratio: runs === first ? null : { perSecond: ratio('perSecond'), p50: ratio('p50Ms'), p99: ratio('p99Ms') },
  }
}

/** `runs`: in the order of the names; the first is set in relation to the others. */
export const summariseAll = (names: readonly string[], runs: readonly (readonly Run[])[]): SubjectFigures[] =>
  runs.map((rounds, index) => summarise(names[index] ?? '', rounds, runs[0] ?? []))

const faultsOf = (where: string, runs: readonly Run[]): string[] => {
  const empty = runs.filter(run => run.operations === 0).map(() => `${where}: a round without any operation`)
  return [...empty, ...runs.flatMap(run => Array.from(run.faults, ([what, count]) => `${where}: ${count} x ${what}`))]
}

export const allFaultsOf = (names: readonly string[], where: string, runs: readonly (readonly Run[])[]): string[] =>
  runs.flatMap((rounds, index) => faultsOf(`${names[index]}, ${where}`, rounds))

/** The columns of a subject, whatever stands left of them. */
export const subjectColumns = (firstName: string): Column[] => [
  { title: 'subject', align: 'left' },
  { title: 'ops/s', align: 'right' },
  { title: 'p50 ms', align: 'right' },
  { title: 'p99 ms', align: 'right' },
  { title: `${firstName} / this: ops/s`, align: 'right' },
  { title: 'p50', align: 'right' },
  { title: 'p99', align: 'right' },
]

export const subjectCells = ({ name, perSecond, p50Ms, p99Ms, ratio }: SubjectFigures): string[] => [
  name,
  ...[perSecond, p50Ms, p99Ms].map(spread),
  ...(ratio ? [spread(ratio.perSecond), figure(ratio.p50.median), figure(ratio.p99.median)] : ['', '', '']),
]

/** The comparisons as a section reports them: each subject's figures, and the ratio of the first to each other. */
export const comparisonResult = (
  names: readonly string[],
  comparisons: readonly Comparison[],
): Pick<SectionResult, 'tables' | 'figures' | 'faults'> & {
  readonly loads: readonly { readonly connections: number; readonly subjects: readonly SubjectFigures[] }[]
} => {
  const loads = comparisons.map(({ connections, runs }) => ({
    connections,
    subjects: summariseAll(names, runs),
  }))
  const table: Table = {
    columns: [{ title: 'connections', align: 'right' }, ...subjectColumns(names[0] ?? '')],
    rows: loads.flatMap(({ connections, subjects }) =>
      subjects.map((subject, index) => [index === 0 ? String(connections) : '', ...subjectCells(subject)]),
    ),
  }
  const faults = comparisons.flatMap(({ connections, runs }) => allFaultsOf(names, `connections ${connections}`, runs))
  return { loads, tables: [table], figures: { loads }, faults }
}

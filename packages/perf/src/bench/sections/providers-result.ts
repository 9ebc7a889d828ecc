import type { BurstRun } from '../load/bursts.ts'
import { spread } from '../report/numbers.ts'
import type { Table } from '../report/table.ts'
import { ratiosOf, type Spread, spreadOf } from '../statistics.ts'

/** What was measured at one provider with so many commits at once. */
export interface ProviderLoad {
  readonly provider: string
  /** Milliseconds that a call of the double takes; 0: it is no double. */
  readonly delayMs: number
  readonly concurrent: number
  readonly runs: { readonly api: readonly BurstRun[]; readonly oneWrite: readonly BurstRun[] }
}

interface ProviderFigures extends Omit<ProviderLoad, 'runs'> {
  readonly api: {
    readonly perSecond: Spread
    readonly p50Ms: Spread
    readonly p99Ms: Spread
    readonly callsPerCommit: Spread
    readonly commits: number
    readonly answered202: number
  }
  readonly oneWrite: { readonly perSecond: Spread; readonly callsPerCommit: Spread; readonly commits: number }
  /** Of the rates: the API's for one of the one-write's. */
  readonly ratio: Spread
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)

const figuresOf = ({ runs, ...load }: ProviderLoad): ProviderFigures => {
  const column = (rounds: readonly BurstRun[], of: 'perSecond' | 'callsPerOperation' | 'p50Ms' | 'p99Ms' | 'done') =>
    rounds.map(run => run[of])
  const common = (rounds: readonly BurstRun[]) => ({
    perSecond: spreadOf(column(rounds, 'perSecond')),
    callsPerCommit: spreadOf(column(rounds, 'callsPerOperation')),
    commits: sum(column(rounds, 'done')),
  })
  return {
    ...load,
    api: {
      ...common(runs.api),
      p50Ms: spreadOf(column(runs.api, 'p50Ms')),
      p99Ms: spreadOf(column(runs.api, 'p99Ms')),
      answered202: sum(runs.api.map(run => run.late)),
    },
    oneWrite: common(runs.oneWrite),
    ratio: ratiosOf(column(runs.api, 'perSecond'), column(runs.oneWrite, 'perSecond')),
  }
}

export const providersTable = (
  loads: readonly ProviderLoad[],
): { readonly table: Table; readonly figures: readonly ProviderFigures[] } => {
  const figures = loads.map(figuresOf)
  const table: Table = {
    columns: [
      { title: 'provider', align: 'left' },
      { title: 'concurrent', align: 'right' },
      { title: 'subject', align: 'left' },
      { title: 'commits/s', align: 'right' },
      { title: 'calls a commit', align: 'right' },
      { title: 'p50 ms', align: 'right' },
      { title: 'p99 ms', align: 'right' },
      { title: 'API / this: commits/s', align: 'right' },
    ],
    rows: figures.flatMap(({ provider, delayMs, concurrent, api, oneWrite, ratio }, index) => {
      const isFirst = figures[index - 1]?.provider !== provider
      const named = delayMs > 0 ? `${provider}, ${delayMs} ms a call` : provider
      return [
        [
          isFirst ? named : '',
          String(concurrent),
          'API',
          ...[api.perSecond, api.callsPerCommit, api.p50Ms, api.p99Ms].map(spread),
          '',
        ],
        ['', '', 'one write', spread(oneWrite.perSecond), spread(oneWrite.callsPerCommit), '', '', spread(ratio)],
      ]
    }),
  }
  return { table, figures }
}

/** What went wrong; and every round that says nothing, because no commit in it had its records out. */
export const faultsOf = (loads: readonly ProviderLoad[]): string[] =>
  loads.flatMap(({ provider, concurrent, runs }) =>
    [...runs.api.map(run => ['API', run] as const), ...runs.oneWrite.map(run => ['one write', run] as const)].flatMap(
      ([subject, { done, faults }]) => {
        const where = `${provider}, ${subject}, ${concurrent} concurrent`
        const empty = done === 0 ? [`${where}: a round without any commit whose records are out`] : []
        return [...empty, ...Array.from(faults, ([what, count]) => `${where}: ${count} x ${what}`)]
      },
    ),
  )

/** A line for each provider that could not be started here. */
export const notMeasured = (providers: readonly { readonly name: string; readonly lacks: string | null }[]): string[] =>
  providers.flatMap(({ name, lacks }) => (lacks ? [`Not measured: ${name}. ${lacks}`] : []))

import { left, right, tableText } from '../../shared/table.ts'
import type { FuzzOptions } from '../options.ts'
import type { StatsRow, Violation } from './stats.ts'

export interface ServiceFigures {
  readonly service: string
  readonly residentMegabytes: readonly [before: number, after: number]
  readonly logLines: number
}

export interface FuzzReport {
  readonly options: FuzzOptions
  readonly seconds: number
  readonly rows: readonly StatsRow[]
  readonly violations: readonly Violation[]
  readonly figures: readonly ServiceFigures[]
}

export const isClean = ({ violations }: FuzzReport): boolean => violations.length === 0

const columns = [
  left('service'),
  left('phase'),
  left('operation or mutation'),
  ...['requests', '2xx', '3xx', '4xx', '5xx', 'closed', 'mean ms', 'violations'].map(right),
]

const toCells = ({ service, phase, row, requests, ms, classes, violations }: StatsRow): string[] => {
  const [closed = 0, , ...byClass] = classes
  return [service, phase, row, ...[requests, ...byClass, closed, (ms / requests).toFixed(1), violations].map(String)]
}

const sumRows = (rows: readonly StatsRow[], labels: Pick<StatsRow, 'service' | 'phase' | 'row'>): StatsRow => ({
  ...labels,
  requests: rows.reduce((sum, { requests }) => sum + requests, 0),
  ms: rows.reduce((sum, { ms }) => sum + ms, 0),
  classes: [0, 1, 2, 3, 4, 5].map(index => rows.reduce((sum, { classes }) => sum + (classes[index] ?? 0), 0)),
  codes: {},
  violations: rows.reduce((sum, { violations }) => sum + violations, 0),
})

/** Each row of the normal phase, and the sum of each phase with a fault. */
const toReportRows = (rows: readonly StatsRow[]): StatsRow[] => {
  const up = rows
    .filter(({ phase }) => phase === 'up')
    .toSorted((a, b) => a.service.localeCompare(b.service) || a.row.localeCompare(b.row))
  const down = Map.groupBy(
    rows.filter(({ phase }) => phase !== 'up'),
    ({ service, phase }) => `${service} ${phase}`,
  )
  const sums = [...down.values()].flatMap(group => (group[0] ? [sumRows(group, { ...group[0], row: 'all' })] : []))
  return [...up, ...sums, sumRows(rows, { service: 'all', phase: '', row: '' })]
}

const violationText = ({ service, row, what, count, counterexample }: Violation): string =>
  [
    `${service}${row ? `, ${row}` : ''}: ${what} (${count} times)`,
    ...(counterexample ? [counterexample.where, ...counterexample.requests].map(line => `  ${line}`) : []),
  ].join('\n')

export const toFuzzText = ({ options, seconds, rows, violations, figures }: FuzzReport): string =>
  [
    `seed ${options.seed}, ${seconds.toFixed(1)} s`,
    tableText({ columns, rows: toReportRows(rows).map(toCells) }),
    ...figures.map(
      ({ service, residentMegabytes: [before, after], logLines }) =>
        `${service}: memory ${before} MB before, ${after} MB after; ${logLines} log lines searched for secrets`,
    ),
    violations.length === 0
      ? 'No violation.'
      : `${violations.length} kinds of violation, each with its smallest failing sequence:\n\n${violations.map(violationText).join('\n\n')}`,
  ].join('\n\n')

export const toFuzzJson = (report: FuzzReport): string => JSON.stringify({ ...report, clean: isClean(report) }, null, 2)

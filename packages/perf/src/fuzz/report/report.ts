import { left, right, tableText } from '../../shared/table.ts'
import type { Options } from '../options.ts'
import type { Fault, Row } from './stats.ts'

export interface ServiceFigures {
  readonly service: string
  readonly residentMegabytes: readonly [before: number, after: number]
  readonly logLines: number
}

export interface Report {
  readonly options: Options
  readonly seconds: number
  readonly rows: readonly Row[]
  readonly faults: readonly Fault[]
  readonly figures: readonly ServiceFigures[]
}

export const isClean = ({ faults }: Report): boolean => faults.length === 0

const columns = [
  left('service'),
  left('phase'),
  left('operation or grammar'),
  ...['requests', '2xx', '3xx', '4xx', '5xx', 'closed', 'mean ms', 'violations'].map(right),
]

const cells = ({ service, phase, row, requests, ms, classes, violations }: Row): string[] => {
  const [closed = 0, , ok = 0, moved = 0, refused = 0, failed = 0] = classes
  return [
    service,
    phase,
    row,
    ...[requests, ok, moved, refused, failed, closed, (ms / requests).toFixed(1), violations].map(String),
  ]
}

const sumOf = (rows: readonly Row[], as: Pick<Row, 'service' | 'phase' | 'row'>): Row => ({
  ...as,
  requests: rows.reduce((sum, { requests }) => sum + requests, 0),
  ms: rows.reduce((sum, { ms }) => sum + ms, 0),
  classes: [0, 1, 2, 3, 4, 5].map(at => rows.reduce((sum, { classes }) => sum + (classes[at] ?? 0), 0)),
  violations: rows.reduce((sum, { violations }) => sum + violations, 0),
})

/** Rows of the usual phase one by one; of a phase in which something is down their sum: there it is whether, not what. */
export const shownRows = (rows: readonly Row[]): Row[] => {
  const up = rows
    .filter(({ phase }) => phase === 'up')
    .toSorted((a, b) => a.service.localeCompare(b.service) || a.row.localeCompare(b.row))
  const down = Map.groupBy(
    rows.filter(({ phase }) => phase !== 'up'),
    ({ service, phase }) => `${service} ${phase}`,
  )
  const summed = [...down.values()].flatMap(group =>
    group[0] ? [sumOf(group, { ...group[0], row: 'all of them' })] : [],
  )
  return [...up, ...summed, sumOf(rows, { service: 'all', phase: '', row: '' })]
}

const faultText = ({ service, row, what, count, where, request }: Fault): string =>
  [
    `${service}${row ? `, ${row}` : ''}: ${what} (${count} times)`,
    ...(request ? [`  ${where}`, `  ${request}`] : []),
  ].join('\n')

export const reportText = ({ options, seconds, rows, faults, figures }: Report): string =>
  [
    `seed ${options.seed}, ${seconds.toFixed(1)} s`,
    tableText({ columns, rows: shownRows(rows).map(cells) }),
    ...figures.map(
      ({ service, residentMegabytes: [before, after], logLines }) =>
        `${service}: memory ${before} MB before, ${after} MB after; ${logLines} log lines searched for secrets`,
    ),
    faults.length === 0
      ? 'No violation.'
      : `${faults.length} kinds of violation:\n\n${faults.map(faultText).join('\n\n')}`,
  ].join('\n\n')

export const reportJson = (report: Report): string => JSON.stringify({ ...report, clean: isClean(report) }, null, 2)

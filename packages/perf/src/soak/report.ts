import { left, right, type Table, tableText, toFigure, toSpread } from '../shared/figures.ts'
import { type Machine, machineText } from '../shared/machine.ts'
import type { FaultName } from './faults/kinds.ts'
import type { InvariantResult } from './invariants.ts'
import type { SoakOptions } from './options.ts'
import type { ResourceUsage } from './resources.ts'
import type { OperationCounts } from './traffic/recorder.ts'

export interface FaultRecoveries {
  readonly name: FaultName
  /** Milliseconds from the end of each fault to the first successful response. */
  readonly recoveriesMs: readonly number[]
}

export interface SoakReport {
  readonly options: SoakOptions
  readonly seconds: number
  readonly notes: readonly string[]
  readonly faults: readonly FaultRecoveries[]
  readonly traffic: readonly (OperationCounts & { readonly operation: string })[]
  readonly resources: readonly ResourceUsage[]
  readonly invariants: readonly InvariantResult[]
}

export const hasNoViolations = ({ invariants }: SoakReport): boolean =>
  invariants.every(({ violations }) => violations.length === 0)

const faultsTable = ({ faults }: SoakReport): Table => ({
  columns: [left('fault'), right('count'), right('recovery median, s'), right('max, s')],
  rows: faults.map(({ name, recoveriesMs }) => {
    const { median, max } = toSpread(recoveriesMs)
    return [name, String(recoveriesMs.length), (median / 1_000).toFixed(2), (max / 1_000).toFixed(2)]
  }),
})

const trafficTable = ({ traffic }: SoakReport): Table => ({
  columns: [left('operation'), ...['requests', 'successful', '4xx', '5xx', 'no response'].map(right)],
  rows: traffic.map(({ operation, requests, successful, rejected, unavailable, unanswered }) => [
    operation,
    ...[requests, successful, rejected, unavailable, unanswered].map(String),
  ]),
})

const resourcesTable = ({ resources }: SoakReport): Table => ({
  columns: [left('resource'), ...['start', 'median', 'end', 'max', 'bound'].map(right)],
  rows: resources.map(({ title, unit, start, median, end, max, bound }) => [
    unit === '' ? title : `${title}, ${unit}`,
    ...[start, median, end, max, bound].map(value => toFigure(Math.round(value))),
  ]),
})

const invariantsTable = ({ invariants }: SoakReport): Table => ({
  columns: [left('invariant'), right('checks'), right('violations')],
  rows: invariants.map(({ invariant, checks, violations }) => [invariant, String(checks), String(violations.length)]),
})

const listViolations = ({ invariants }: SoakReport): string[] =>
  invariants.flatMap(({ invariant, violations }) => violations.map(text => `VIOLATION ${invariant}: ${text}`))

export const toSoakText = (machine: Machine, report: SoakReport): string => {
  const { options, seconds, notes, faults } = report
  const faultCount = faults.reduce((sum, { recoveriesMs }) => sum + recoveriesMs.length, 0)
  const summary = `${(seconds / 60).toFixed(1)} minutes with ${faultCount} faults, seed ${options.seed}`
  return [
    [machineText(machine), `soak      ${summary}`, ...notes.map(note => `note      ${note}`)].join('\n'),
    ...[faultsTable, trafficTable, resourcesTable, invariantsTable].map(table => tableText(table(report))),
    hasNoViolations(report) ? 'No invariant was violated.' : listViolations(report).join('\n'),
  ].join('\n\n')
}

export const toSoakJson = (machine: Machine, report: SoakReport): string =>
  JSON.stringify({ machine, valid: hasNoViolations(report), ...report }, null, 2)

import { type Machine, machineText } from '../../shared/machine.ts'
import { toSpread } from '../../shared/stats.ts'
import { left, right, type Table, tableText, toFigure } from '../../shared/table.ts'
import { isClean, type SoakOutcome } from '../outcome.ts'

const faultsTable = ({ faults }: SoakOutcome): Table => ({
  columns: [left('fault'), right('times'), right('recovery median, s'), right('max, s')],
  rows: faults.map(({ name, recoveriesMs }) => {
    const { median, max } = toSpread(recoveriesMs)
    return [name, String(recoveriesMs.length), (median / 1_000).toFixed(2), (max / 1_000).toFixed(2)]
  }),
})

const trafficTable = ({ traffic }: SoakOutcome): Table => ({
  columns: [left('operation'), ...['requests', 'ok', 'refused', '503', 'no answer'].map(right)],
  rows: traffic.map(({ operation, requests, ok, refused, unavailable, unanswered }) => [
    operation,
    ...[requests, ok, refused, unavailable, unanswered].map(String),
  ]),
})

const measuredTable = ({ measured }: SoakOutcome): Table => ({
  columns: [left('bounded'), ...['start', 'median', 'end', 'max', 'bound'].map(right)],
  rows: measured.map(({ title, unit, start, median, end, max, most }) => [
    unit === '' ? title : `${title}, ${unit}`,
    ...[start, median, end, max, most].map(value => toFigure(Math.round(value))),
  ]),
})

const verdictsTable = ({ verdicts }: SoakOutcome): Table => ({
  columns: [left('invariant'), right('looked at'), right('broken')],
  rows: verdicts.map(({ invariant, checks, broken }) => [invariant, String(checks), String(broken.length)]),
})

const evidence = ({ verdicts }: SoakOutcome): string[] =>
  verdicts.flatMap(({ invariant, broken }) => broken.map(fault => `BROKEN ${invariant}: ${fault}`))

const faultCount = ({ faults }: SoakOutcome): number =>
  faults.reduce((sum, { recoveriesMs }) => sum + recoveriesMs.length, 0)

/** The table that a run ends with. */
export const reportText = (machine: Machine, outcome: SoakOutcome): string => {
  const { options, seconds, notes } = outcome
  const lasted = `${(seconds / 60).toFixed(1)} minutes with ${faultCount(outcome)} faults, seed ${options.seed}`
  return [
    [machineText(machine), `soak      ${lasted}`, ...notes.map(note => `note      ${note}`)].join('\n'),
    ...[faultsTable, trafficTable, measuredTable, verdictsTable].map(table => tableText(table(outcome))),
    isClean(outcome) ? 'No invariant was broken.' : evidence(outcome).join('\n'),
  ].join('\n\n')
}

export const reportJson = (machine: Machine, outcome: SoakOutcome): string =>
  JSON.stringify({ machine, valid: isClean(outcome), ...outcome }, null, 2)

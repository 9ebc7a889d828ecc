import { faultKinds, RECOVERY_WINDOW_MS } from '../faults/kinds.ts'
import type { PlannedFault } from '../faults/schedule.ts'

/** A fault as it went. */
export interface InjectedFault {
  readonly fault: PlannedFault
  readonly from: number
  /** When its cause was taken away; Infinity: not yet. */
  readonly to: number
}

/** A call that got no answer, or 5xx. */
export interface Failure {
  /** A replica's number, or the witness. */
  readonly target: number | 'witness'
  readonly what: string
  /** Null: no answer. */
  readonly status: number | null
  readonly start: number
  readonly end: number
}

const explains = ({ fault, from, to }: InjectedFault, { target, start, end }: Failure): boolean => {
  if (end < from || start > to + RECOVERY_WINDOW_MS) return false
  switch (faultKinds[fault.name].explains) {
    case 'witness':
      return target === 'witness'
    case 'replicas':
      return target !== 'witness'
    case 'replica':
      return target === fault.replica
    default:
      return false
  }
}

/** The calls that failed without a fault that explains it. 500 says that the service itself is at fault: nothing explains it. */
export const findUnattributable = (failures: readonly Failure[], inflicted: readonly InjectedFault[]): string[] =>
  failures
    .filter(failure => failure.status === 500 || !inflicted.some(fault => explains(fault, failure)))
    .map(
      ({ target, what, status, start, end }) =>
        `${target === 'witness' ? target : `replica ${target}`}: ${what} ${status === null ? 'got no answer' : `answered ${status}`}, ${new Date(start).toISOString()} to ${new Date(end).toISOString()}`,
    )

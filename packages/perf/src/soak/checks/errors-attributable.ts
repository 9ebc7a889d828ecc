import { faultKinds, RECOVERY_WINDOW_MS } from '../faults/kinds.ts'
import type { PlannedFault } from '../faults/schedule.ts'

export interface InjectedFault {
  readonly fault: PlannedFault
  readonly startedAt: number
  /** Infinity while the fault lasts. */
  readonly endedAt: number
}

/** A call with a 5xx response or none. */
export interface FailedCall {
  /** The number of a replica, or the witness. */
  readonly target: number | 'witness'
  readonly operation: string
  /** Null: no response. */
  readonly status: number | null
  readonly start: number
  readonly end: number
}

const isAttributable = (
  { fault, startedAt: from, endedAt: to }: InjectedFault,
  { target, operation, status, start, end }: FailedCall,
): boolean => {
  if (end < from || start > to + RECOVERY_WINDOW_MS) return false
  switch (faultKinds[fault.name].errorScope) {
    case 'witness':
      return target === 'witness'
    case 'replicas':
      return target !== 'witness'
    case 'replica':
      return target === fault.replica
    case 'lists of the replica':
      return target === fault.replica && status === 503 && /^(?:list|history)\b/.test(operation)
    default:
      return false
  }
}

/** Describes the failed calls that no fault accounts for. A 500 is a defect of the service and is never attributable. */
export const findUnattributableErrors = (
  failures: readonly FailedCall[],
  inflicted: readonly InjectedFault[],
): string[] =>
  failures
    .filter(failure => failure.status === 500 || !inflicted.some(fault => isAttributable(fault, failure)))
    .map(
      ({ target, operation: what, status, start, end }) =>
        `${target === 'witness' ? target : `replica ${target}`}: ${what} ${status === null ? 'got no response' : `got ${status}`}, ${new Date(start).toISOString()} to ${new Date(end).toISOString()}`,
    )

import { faultKinds, RECOVERY_WINDOW_MS, readOnlyFaults } from '../faults/kinds.ts'
import type { PlannedFault } from '../faults/schedule.ts'
import type { Span } from './operations.ts'

/** Row locks that a fault holds from the start to the end of the span. */
export interface HeldLocks extends Span {
  readonly table: 'pool_allocations' | 'dns_names'
  readonly names: ReadonlySet<string>
}

export interface InjectedFault {
  readonly fault: PlannedFault
  readonly startedAt: number
  /** Infinity while the fault lasts. */
  readonly endedAt: number
  readonly locks?: HeldLocks
}

/** A call with a 5xx response or none. */
export interface FailedCall {
  /** The number of a replica, or the witness. */
  readonly target: number | 'witness'
  readonly operation: string
  /** Absent: the call is to the witness. */
  readonly requestId?: string
  /** Absent: the call is not about one name. */
  readonly name?: string
  /** Null: no response. */
  readonly status: number | null
  /** The error code of the response. */
  readonly error?: string
  readonly start: number
  readonly end: number
}

const isAttributable = (
  { fault, startedAt: from, endedAt: to, locks }: InjectedFault,
  { target, operation, name, status, error, start, end }: FailedCall,
): boolean => {
  if (end < from || start > to + RECOVERY_WINDOW_MS) return false
  if (error === 'database-read-only' && !readOnlyFaults.has(fault.name)) return false
  if (error === 'too-many-readers' && fault.name !== 'readers stalled') return false
  switch (faultKinds[fault.name].errorScope) {
    case 'witness':
      return target === 'witness'
    case 'replicas':
      return target !== 'witness'
    case 'replica':
      return target === fault.replica
    case 'lists of the replica':
      return target === fault.replica && status === 503 && /^(?:list|history)\b/.test(operation)
    case 'locked names':
      // A republish needs the records of every name.
      return name === undefined ? operation.startsWith('republish') : locks?.names.has(name) === true
    default:
      return false
  }
}

/** The failed calls that no fault accounts for. A 500 is a defect of the service and is never attributable. */
export const findUnattributable = (
  failures: readonly FailedCall[],
  inflicted: readonly InjectedFault[],
): FailedCall[] =>
  failures.filter(failure => failure.status === 500 || !inflicted.some(fault => isAttributable(fault, failure)))

export const describeFailedCall = ({ target, operation, name, status, error, start, end }: FailedCall): string => {
  const sender = target === 'witness' ? target : `replica ${target}`
  const outcome = status === null ? 'got no response' : `got ${status}${error ? ` ${error}` : ''}`
  const times = `${new Date(start).toISOString()} to ${new Date(end).toISOString()}`
  return `${sender}: ${operation}${name ? ` of ${name}` : ''} ${outcome}, ${times}`
}

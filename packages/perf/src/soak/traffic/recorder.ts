import type { Operation } from '@pool/test-kit/linearizability/history.ts'
import type { AddressReading } from '../checks/addresses.ts'
import type { FailedCall } from '../checks/errors-attributable.ts'
import type { FollowedLog } from '../checks/log-stream.ts'
import type { NameObservation, NameOperation } from '../checks/operations.ts'
import type { UnavailableWrite } from '../checks/unavailable-writes.ts'

export interface OperationCounts {
  requests: number
  successful: number
  rejected: number
  unavailable: number
  unanswered: number
}

/** The requests of all clients and their results. */
export interface Recorder {
  readonly operations: NameOperation[]
  readonly observations: NameObservation[]
  readonly addressReadings: AddressReading[]
  readonly failedCalls: FailedCall[]
  readonly unavailableWrites: UnavailableWrite[]
  readonly leases: Operation[]
  readonly followedLogs: FollowedLog[]
  readonly counts: Map<string, OperationCounts>
  /** Counts one request by its status; null: no response. */
  readonly count: (operation: string, status: number | null) => void
}

const toOutcome = (status: number | null): 'unanswered' | 'unavailable' | 'rejected' | 'successful' => {
  if (status === null) return 'unanswered'
  if (status >= 500) return 'unavailable'
  return status >= 400 ? 'rejected' : 'successful'
}

export const createRecorder = (): Recorder => {
  const counts = new Map<string, OperationCounts>()
  return {
    operations: [],
    observations: [],
    addressReadings: [],
    failedCalls: [],
    unavailableWrites: [],
    leases: [],
    followedLogs: [],
    counts,
    count(operation, status) {
      const count = counts.get(operation) ?? { requests: 0, successful: 0, rejected: 0, unavailable: 0, unanswered: 0 }
      count.requests += 1
      count[toOutcome(status)] += 1
      counts.set(operation, count)
    },
  }
}

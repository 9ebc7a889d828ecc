import type { Operation } from '@pool/test-kit/linearizability/history.ts'
import type { Failure } from '../checks/errors-attributable.ts'
import type { Followed } from '../checks/log-stream.ts'
import type { NameOperation, Reading } from '../checks/operations.ts'

export interface Count {
  requests: number
  ok: number
  refused: number
  unavailable: number
  unanswered: number
}

/** Everything that the clients saw. */
export interface Recorder {
  readonly acts: NameOperation[]
  readonly readings: Reading[]
  readonly failures: Failure[]
  readonly leases: Operation[]
  readonly followed: Followed[]
  readonly counts: Map<string, Count>
  /** One request of an operation, by its status; null: no answer. */
  readonly count: (operation: string, status: number | null) => void
}

const kindOf = (status: number | null): 'unanswered' | 'unavailable' | 'refused' | 'ok' => {
  if (status === null) return 'unanswered'
  if (status >= 500) return 'unavailable'
  return status >= 400 ? 'refused' : 'ok'
}

export const createRecorder = (): Recorder => {
  const counts = new Map<string, Count>()
  return {
    acts: [],
    readings: [],
    failures: [],
    leases: [],
    followed: [],
    counts,
    count(operation, status) {
      const count = counts.get(operation) ?? { requests: 0, ok: 0, refused: 0, unavailable: 0, unanswered: 0 }
      count.requests += 1
      count[kindOf(status)] += 1
      counts.set(operation, count)
    },
  }
}

import type { InjectedFault } from './errors-attributable.ts'
import type { ReplayRow } from './history.ts'
import type { Span } from './operations.ts'

/** One attempt of a write that got 503. */
export interface UnavailableWrite extends Span {
  readonly requestId: string
  /** Undefined: it is not about one name. */
  readonly name: string | undefined
  /** The error code of the response. */
  readonly error: string | undefined
}

/** Why an attempt cannot have had an effect when its response arrived; undefined: it can. */
const findReason = ({ name, error, start, end }: UnavailableWrite, injected: readonly InjectedFault[]) => {
  if (error === 'database-read-only') return 'got database-read-only'
  const isLocked = injected.some(
    ({ locks }) =>
      locks?.table === 'pool_allocations' &&
      name !== undefined &&
      locks.names.has(name) &&
      locks.start <= start &&
      locks.end >= end,
  )
  return isLocked ? 'got 503 while its row was locked' : undefined
}

/** A write that the database did not accept, or that waited for a lock until its 503, has no effect later either. */
export const findLateWrites = (
  writes: readonly UnavailableWrite[],
  injected: readonly InjectedFault[],
  history: readonly ReplayRow[],
): string[] => {
  const rows = new Map(history.map(row => [row.requestId, row]))
  return writes.flatMap(write => {
    const reason = findReason(write, injected)
    const row = rows.get(write.requestId)
    return reason && row
      ? [
          `${write.requestId} ${reason} at ${new Date(write.end).toISOString()}, but the history has ${JSON.stringify(row)}`,
        ]
      : []
  })
}

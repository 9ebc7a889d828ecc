export interface SweeperDependencies {
  /** Deletes up to `limit` that are due and says how many. */
  readonly deleteExpired: (limit: number) => Promise<number>
  readonly forgetKeys: (limit: number) => Promise<number>
  readonly onDeleted: (count: number) => void
  /** Milliseconds, of a clock that never goes back. */
  readonly now: () => number
  /** Resolves after so many milliseconds, or when the signal says so. */
  readonly rest: (ms: number, signal: AbortSignal) => Promise<void>
}

/** Rows a statement: few enough that nobody who wants one of them, or its turn at the database, waits noticeably. */
const BATCH = 250
/** The rest after a batch is so many times what it took: of the database it never has more than a fourth of one core. */
const RESTS = 3

/**
 * Removes what has expired, batch after batch, at leisure. It frees no name that was not free before: it only keeps the
 * tables small. Any number of replicas may run it at once; each skips what another is at.
 */
export const sweep = ({ deleteExpired, forgetKeys, onDeleted, now, rest }: SweeperDependencies) => {
  const drain = async (
    removeBatch: (limit: number) => Promise<number>,
    signal: AbortSignal,
    onRemoved: (count: number) => void,
  ): Promise<void> => {
    while (!signal.aborted) {
      const begun = now()
      const removed = await removeBatch(BATCH)
      onRemoved(removed)
      if (removed < BATCH) return
      await rest((now() - begun) * RESTS, signal)
    }
  }
  return async (signal: AbortSignal): Promise<void> => {
    await drain(deleteExpired, signal, onDeleted)
    await drain(forgetKeys, signal, () => {})
  }
}

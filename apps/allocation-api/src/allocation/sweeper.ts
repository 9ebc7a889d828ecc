export interface SweeperDependencies {
  /** Deletes up to `limit` that are due and says how many. */
  readonly deleteExpired: (limit: number) => Promise<number>
  readonly forgetKeys: (limit: number) => Promise<number>
  readonly onDeleted: (count: number) => void
}

/** Rows a statement: small enough that nobody who wants one of them waits noticeably. */
const BATCH = 1_000

const drain = async (removeBatch: (limit: number) => Promise<number>, signal: AbortSignal): Promise<number> => {
  let total = 0
  while (!signal.aborted) {
    const removed = await removeBatch(BATCH)
    total += removed
    if (removed < BATCH) break
  }
  return total
}

/**
 * Removes what has expired, batch after batch. It frees no name that was not free before: it only keeps the tables
 * small. Any number of replicas may run it at once; each skips what another is at.
 */
export const sweep =
  ({ deleteExpired, forgetKeys, onDeleted }: SweeperDependencies) =>
  async (signal: AbortSignal): Promise<void> => {
    onDeleted(await drain(deleteExpired, signal))
    await drain(forgetKeys, signal)
  }

export interface SweeperOptions {
  /** Each deletes up to `limit` expired rows and returns how many. */
  readonly deleteReservations: (limit: number) => Promise<number>
  readonly deleteKeys: (limit: number) => Promise<number>
  /** The number of reservations of each batch. */
  readonly onDeleted: (count: number) => void
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** Resolves after `ms`, or when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
}

/** Small enough that a batch does not noticeably delay a request for one of its rows. */
const BATCH_SIZE = 250
/** The pause after a batch, as a multiple of its duration: sweeping uses at most a quarter of one core of the database. */
const PAUSE_FACTOR = 3

/**
 * Deletes expired reservations and Idempotency-Keys in batches until none is left. It only keeps the tables small: an
 * expired reservation is free and an expired key is new, whether or not its row exists. Several replicas may sweep at the
 * same time; each skips the rows that another one has locked.
 */
export const sweepExpired = async (
  { deleteReservations, deleteKeys, onDeleted, now, sleep }: SweeperOptions,
  signal: AbortSignal,
): Promise<void> => {
  const deleteAll = async (
    deleteBatch: (limit: number) => Promise<number>,
    onBatch: (count: number) => void,
  ): Promise<void> => {
    while (!signal.aborted) {
      const startedAt = now()
      const deleted = await deleteBatch(BATCH_SIZE)
      onBatch(deleted)
      if (deleted < BATCH_SIZE) return
      await sleep((now() - startedAt) * PAUSE_FACTOR, signal)
    }
  }
  await deleteAll(deleteReservations, onDeleted)
  await deleteAll(deleteKeys, () => {})
}

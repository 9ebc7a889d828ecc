export interface BatchOptions {
  /** Deletes up to `limit` rows. Returns whether there may be more. */
  readonly deleteBatch: (limit: number) => Promise<boolean>
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** Resolves after `ms`, or when the signal aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>
}

/** Small enough that a batch does not noticeably delay a request for one of its rows. */
export const DELETE_BATCH_SIZE = 250
/** The pause after a batch, as a multiple of its duration: deleting uses at most a quarter of one core of the database. */
const PAUSE_FACTOR = 3

/** Deletes rows in small batches until none is left or the signal aborts. */
export const deleteInBatches = async (
  { deleteBatch, now, sleep }: BatchOptions,
  signal: AbortSignal,
): Promise<void> => {
  while (!signal.aborted) {
    const startedAt = now()
    if (!(await deleteBatch(DELETE_BATCH_SIZE))) return
    await sleep((now() - startedAt) * PAUSE_FACTOR, signal)
  }
}

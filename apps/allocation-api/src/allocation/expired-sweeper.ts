import { type BatchOptions, deleteInBatches } from '../lib/delete-in-batches.ts'

export interface SweeperOptions extends Omit<BatchOptions, 'deleteBatch'> {
  /** Each deletes up to `limit` expired rows and returns how many. */
  readonly deleteReservations: (limit: number) => Promise<number>
  readonly deleteKeys: (limit: number) => Promise<number>
  /** The number of reservations of each batch. */
  readonly onDeleted: (count: number) => void
}

/**
 * Deletes expired reservations and Idempotency-Keys in batches until none is left. It only keeps the tables small: an
 * expired reservation is free and an expired key is new, whether or not its row exists. Several replicas may sweep at the
 * same time; each skips the rows that another one has locked.
 */
export const sweepExpired = async (
  { deleteReservations, deleteKeys, onDeleted, ...options }: SweeperOptions,
  signal: AbortSignal,
): Promise<void> => {
  const deleteReservationBatch = async (limit: number) => {
    const deleted = await deleteReservations(limit)
    onDeleted(deleted)
    return deleted === limit
  }
  await deleteInBatches({ ...options, deleteBatch: deleteReservationBatch }, signal)
  await deleteInBatches({ ...options, deleteBatch: async limit => (await deleteKeys(limit)) === limit }, signal)
}

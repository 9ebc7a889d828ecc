import type { Job, ObjectStorageCredentials } from './types.ts'

/** What is to be done about a deployment, whether it was just asked for or left by a process that ended. */
export type NextStep =
  | { readonly kind: 'make' }
  /** The infrastructure is up: only its name is left to be committed. */
  | { readonly kind: 'finish' }
  | { readonly kind: 'fail'; readonly reason: string }

/** Whatever ends every process that makes it, must not end them for ever. Handing over counts too. */
const MOST_RUNS = 20

export const CANCELLED = 'It was cancelled.'

/**
 * Keys are in the memory of the process that was given them and nowhere else. Without them what needs them cannot be
 * made by anybody; what does not, or is made already, goes on wherever it was left.
 */
export const nextStep = (
  { order, result, isCancelled, failure, generation }: Job,
  keys: ObjectStorageCredentials | null,
): NextStep => {
  // Its name may be free already, and somebody else's.
  if (failure !== null) return { kind: 'fail', reason: failure }
  if (isCancelled) return { kind: 'fail', reason: CANCELLED }
  if (result) return { kind: 'finish' }
  if (generation > MOST_RUNS) {
    return { kind: 'fail', reason: `${MOST_RUNS} processes have worked on it, and ended before it did.` }
  }
  if (!order.storage || keys) return { kind: 'make' }
  return {
    kind: 'fail',
    reason:
      'The process that worked on it ended, and the object storage keys were in its memory alone. Create it again: what has been made is gone on with.',
  }
}

import type { AccessKeyPair, RunState } from './types.ts'

/** How a new or orphaned deployment continues. */
export type ResumeDecision =
  | { readonly kind: 'apply' }
  /** The infrastructure is up; only the name remains to be committed. */
  | { readonly kind: 'commit' }
  | { readonly kind: 'fail'; readonly reason: string }

/** A deployment that crashes every process must not crash them indefinitely. Releases at shutdown count too. */
const MAX_RUNS = 20

export const CANCELLED = 'Cancelled.'

/**
 * Credentials exist only in the memory of the process that accepted the request. After a crash, a deployment can resume
 * if it needs no credentials, or if its infrastructure is already up.
 */
export const decideResume = (
  { spec, result, isCancelled, pendingError, generation }: RunState,
  credentials: AccessKeyPair | null,
): ResumeDecision => {
  // Its name may have been released already, and reserved by another client.
  if (pendingError !== null) return { kind: 'fail', reason: pendingError }
  if (isCancelled) return { kind: 'fail', reason: CANCELLED }
  if (result) return { kind: 'commit' }
  if (generation > MAX_RUNS) {
    const reason = `Gave up after ${MAX_RUNS} runs: every process running this deployment exited before it finished.`
    return { kind: 'fail', reason }
  }
  if (!spec.storage || credentials) return { kind: 'apply' }
  return {
    kind: 'fail',
    reason:
      'The process running this deployment exited, and the object storage credentials were only in its memory. Create it again; Terraform resumes from the saved state.',
  }
}

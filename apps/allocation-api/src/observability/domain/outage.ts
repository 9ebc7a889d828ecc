/** Without a failure for this time, a success ends the outage: statements that were in flight can still fail. */
const QUIET_MS = 5_000

export interface EndedOutage {
  /** From the first failure to the last. */
  readonly seconds: number
  readonly failures: number
}

/** Reduces repeated failures of one dependency to the start and the end of an outage. `now` is a monotonic clock in milliseconds. */
export const createOutage = (now: () => number) => {
  let current: { readonly startedAt: number; lastFailureAt: number; failures: number } | null = null
  return {
    /** Whether this failure starts an outage. */
    onFailure(): boolean {
      const at = now()
      if (current === null) {
        current = { startedAt: at, lastFailureAt: at, failures: 1 }
        return true
      }
      current.lastFailureAt = at
      current.failures += 1
      return false
    },
    /** The outage that this success ends; null if there is none, or if its last failure is too recent. */
    onSuccess(): EndedOutage | null {
      if (current === null || now() - current.lastFailureAt < QUIET_MS) return null
      const { startedAt, lastFailureAt, failures } = current
      current = null
      return { seconds: Math.round(lastFailureAt - startedAt) / 1_000, failures }
    },
  }
}

import { withTimeout } from './with-timeout.ts'

export interface HealthCheckOptions {
  /** Milliseconds after which a check that has not ended counts as failed. */
  readonly timeoutMs: number
  /** Milliseconds for which a result is returned again, so that probes cause a bounded number of checks. */
  readonly keepMs: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
}

/** Returns a function that reports whether `check` succeeds in time. Concurrent calls share one check. */
export const createHealthCheck = (
  check: () => PromiseLike<unknown>,
  { timeoutMs, keepMs, now }: HealthCheckOptions,
): (() => Promise<boolean>) => {
  let latest: Promise<boolean> | undefined
  let validUntil = Number.POSITIVE_INFINITY
  const run = async () => {
    try {
      await withTimeout(Promise.resolve(check()), timeoutMs)
      return true
    } catch {
      return false
    } finally {
      validUntil = now() + keepMs
    }
  }
  return () => {
    if (latest === undefined || now() >= validUntil) {
      validUntil = Number.POSITIVE_INFINITY
      latest = run()
    }
    return latest
  }
}

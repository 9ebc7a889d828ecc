export interface ThrottledCacheOptions {
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** Resolves when a caller stops waiting for a query in flight. */
  readonly wait: () => Promise<unknown>
}

/** The pause after a query, as a multiple of its duration: at most a twentieth of the time is spent querying. */
const PAUSE_FACTOR = 19
/** A query that takes longer than half a minute uses a larger share of the time. */
const MAX_PAUSE_MS = 600_000
/** After an error, the database may be back soon. */
const MAX_PAUSE_AFTER_ERROR_MS = 60_000

/**
 * A cache for a query whose cost grows with the data. At most one query is in flight. During the pause after it, callers get
 * its result or its error. A caller that arrives while a query is in flight waits for it, but not longer than `wait`, and
 * then gets the previous result; if there is none, an error. A cheap query is practically always current.
 */
export const throttledCache = <Result>(
  query: () => Promise<Result>,
  { now, wait }: ThrottledCacheOptions,
): (() => Promise<Result>) => {
  let inFlight: Promise<Result> | undefined
  let latest: Promise<Result> | undefined
  let validUntil = Number.NEGATIVE_INFINITY

  const refresh = (): Promise<Result> => {
    const startedAt = now()
    const result = query()
    const keepFor = (maxPauseMs: number) => () => {
      inFlight = undefined
      latest = result
      validUntil = now() + Math.min((now() - startedAt) * PAUSE_FACTOR, maxPauseMs)
    }
    result.then(keepFor(MAX_PAUSE_MS), keepFor(MAX_PAUSE_AFTER_ERROR_MS))
    inFlight = result
    return result
  }

  const latestAfterWait = async (): Promise<Result> => {
    await wait()
    if (latest === undefined) throw new Error('the first query is still in flight')
    return latest
  }

  return () => {
    if (latest !== undefined && now() < validUntil) return latest
    return Promise.race([inFlight ?? refresh(), latestAfterWait()])
  }
}

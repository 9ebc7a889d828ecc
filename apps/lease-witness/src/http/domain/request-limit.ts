const MINUTE_MS = 60_000

/**
 * Limits the requests per minute of each key. A key may use a whole minute's requests at once; after that they are spread
 * evenly (the generic cell rate algorithm). The caller bounds the number of keys.
 */
export class RequestLimit {
  /** By key, the time at which all of its requests will have been refilled. */
  readonly #refilledAt = new Map<string, number>()

  /** Counts a request. 0: it is within the limit; otherwise the milliseconds until the next one will be. */
  take(key: string, maxPerMinute: number, now: number): number {
    const interval = MINUTE_MS / maxPerMinute
    // The upper bound matters only after the clock was set back: without it, the key would have to wait for the old time.
    const refilledAt = Math.min(Math.max(this.#refilledAt.get(key) ?? now, now), now + MINUTE_MS)
    const waitMs = refilledAt + interval - (now + MINUTE_MS)
    // Sums of fractions of a millisecond are not exact.
    if (waitMs > 1e-6) return waitMs
    this.#refilledAt.set(key, refilledAt + interval)
    return 0
  }
}

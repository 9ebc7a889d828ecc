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
    const stored = this.#refilledAt.get(key) ?? now
    // Later than a minute from now: the clock was set back. The key would have to wait for the old time.
    const refilledAt = stored > now + MINUTE_MS + interval ? now : Math.max(stored, now)
    const waitMs = refilledAt + interval - (now + MINUTE_MS)
    // Sums of fractions of a millisecond are not exact.
    if (waitMs > 1e-6) return waitMs
    this.#refilledAt.set(key, refilledAt + interval)
    return 0
  }
}

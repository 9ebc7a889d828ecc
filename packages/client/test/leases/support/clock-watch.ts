/**
 * When an event happened, by the clock of the observer: after it found the pipe empty for the last time, and before it read the
 * event. Both are milliseconds.
 */
export interface Moment {
  readonly after: number
  readonly at: number
}

/** By how much a wall clock was set, at least, between two of its readings. Negative: back. */
export interface ClockStep {
  readonly byMs: number
  readonly at: number
}

/** The rates of two clocks of one machine differ by less: 500 ppm is what NTP applies at most. */
const MAX_DRIFT = 0.001
/** A reading has whole milliseconds, and the remaining time of a lease is rounded too. */
const ROUNDING_MS = 2

/**
 * Finds the steps of a wall clock that is read at moments of a monotonic clock. Each reading bounds the difference between the
 * two clocks. A reading that contradicts the earlier ones shows a step, which was at least as large as the contradiction.
 */
export class ClockWatch {
  readonly steps: ClockStep[] = []
  #low = Number.NEGATIVE_INFINITY
  #high = Number.POSITIVE_INFINITY
  #lastAt = 0

  observe(wallMs: number, { after, at }: Moment): void {
    const driftMs = Math.max(0, at - this.#lastAt) * MAX_DRIFT
    const [low, high] = [wallMs - ROUNDING_MS - at, wallMs + ROUNDING_MS - after]
    const [lowest, highest] = [this.#low - driftMs, this.#high + driftMs]
    this.#lastAt = Math.max(at, this.#lastAt)
    const byMs = low > highest ? low - highest : high < lowest ? high - lowest : 0
    if (byMs !== 0) this.steps.push({ byMs, at })
    this.#low = byMs === 0 ? Math.max(low, lowest) : low
    this.#high = byMs === 0 ? Math.min(high, highest) : high
  }
}

/** The size of the largest step, in milliseconds; 0 without a step. */
export const largestStepMs = (steps: readonly ClockStep[]): number =>
  Math.max(0, ...steps.map(({ byMs }) => Math.abs(byMs)))

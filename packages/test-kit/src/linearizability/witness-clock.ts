import type { Prng } from '../prng.ts'

/** Readings of a clock, in milliseconds since the epoch. */
export interface TimeWindow {
  readonly from: number
  readonly until: number
}

/** What the clock of the witness can have shown. */
export interface WitnessClock {
  /** The possible readings between two times of this machine's clock. */
  readonly readings: (from: number, until: number) => readonly TimeWindow[]
}

/** The witness runs on this machine's clock. */
export const machineClock: WitnessClock = { readings: (from, until) => [{ from, until }] }

interface Offset {
  /** How far the clock of the witness is ahead of this machine's. */
  readonly aheadMs: number
  /** This machine's times between which the witness can have used the offset. */
  readonly from: number
  /** When the step to the next offset began. Until it has ended, a clock that stands still can show this time. */
  leftAt: number
  until: number
}

const MAX_STEP_MS = 3_600_000
/** Near the longest step that a slot bridges. */
const MAX_SHORT_STEP_MS = 70_000
const MAX_SMALL_STEP_MS = 1_000

/** A step in milliseconds, forward or back: up to an hour, about what a slot bridges, or up to a second. */
export const chooseClockStep = (prng: Prng): number => {
  const maxMs = prng.pick([MAX_STEP_MS, MAX_SHORT_STEP_MS, MAX_SMALL_STEP_MS])
  return prng.below(2 * maxMs + 1) - maxMs
}

/** A clock of the witness that a test sets forward and back. */
export class SteppedClock implements WitnessClock {
  readonly #errorMs: number
  readonly #offsets: Offset[] = [
    { aheadMs: 0, from: Number.NEGATIVE_INFINITY, leftAt: Number.POSITIVE_INFINITY, until: Number.POSITIVE_INFINITY },
  ]

  /** `errorMs`: by how much the witness can decide by another time than its clock shows. */
  constructor({ errorMs = 0 } = {}) {
    this.#errorMs = errorMs
  }

  get aheadMs(): number {
    return this.#offsets.at(-1)?.aheadMs ?? 0
  }

  get steps(): number {
    return this.#offsets.length - 1
  }

  /** What the clock shows now, unless a step is in progress. */
  now(): number {
    return Date.now() + this.aheadMs
  }

  /** Sets the clock. `apply` resolves when the witness no longer uses the previous offset. */
  async step(aheadMs: number, apply: (aheadMs: number) => Promise<void>): Promise<void> {
    const previous = this.#offsets.at(-1)
    const from = Date.now()
    if (previous) previous.leftAt = from
    this.#offsets.push({ aheadMs, from, leftAt: Number.POSITIVE_INFINITY, until: Number.POSITIVE_INFINITY })
    await apply(aheadMs)
    if (previous) previous.until = Date.now()
  }

  readings(from: number, until: number): readonly TimeWindow[] {
    return this.#offsets
      .filter(offset => offset.from <= until && offset.until >= from)
      .map(offset => ({
        from: Math.max(Math.min(from, offset.leftAt), offset.from) + offset.aheadMs - this.#errorMs,
        until: Math.min(until, offset.until) + offset.aheadMs + this.#errorMs,
      }))
  }
}

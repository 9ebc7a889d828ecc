/**
 * The two clocks of a process. Neither is enough alone: on Linux the monotonic clock stops while the machine is suspended,
 * and the wall clock can be set back.
 */
export interface ClockReading {
  /** Milliseconds of a clock that never goes back. */
  readonly monotonicMs: number
  /** Milliseconds since the epoch. */
  readonly wallMs: number
}

/** A point in time of this process, by each of the two clocks. Neither goes back. */
export type Instant = ClockReading

/** A duration that began at an instant. */
export interface Timeout {
  readonly since: Instant
  readonly ms: number
}

/** The wall clock has whole milliseconds, so a smaller difference between the clocks is its rounding. */
const MIN_STEP_MS = 1

/**
 * The instant of a reading. If the clocks disagree about the time since the last one, the machine was suspended or the wall
 * clock was set, and both instants advance by the longer time: otherwise a later step back would hide a suspension.
 */
export const advance = (last: { reading: ClockReading; instant: Instant }, reading: ClockReading): Instant => {
  const monotonicMs = Math.max(0, reading.monotonicMs - last.reading.monotonicMs)
  const wallMs = Math.max(0, reading.wallMs - last.reading.wallMs)
  const longerMs = Math.max(monotonicMs, wallMs)
  const isStep = Math.abs(reading.wallMs - last.reading.wallMs - monotonicMs) >= MIN_STEP_MS
  return {
    monotonicMs: last.instant.monotonicMs + (isStep ? longerMs : monotonicMs),
    wallMs: last.instant.wallMs + (isStep ? longerMs : wallMs),
  }
}

/**
 * Milliseconds between two instants by the clock that advanced more. Never less than the true time, to the millisecond, if one
 * of the clocks was right between every two readings.
 */
export const elapsedMs = (since: Instant, now: Instant): number =>
  Math.max(0, now.monotonicMs - since.monotonicMs, now.wallMs - since.wallMs)

/** Milliseconds until a timeout; 0 if it is over. */
export const msUntil = ({ since, ms }: Timeout, now: Instant): number => Math.max(0, ms - elapsedMs(since, now))

/** Returns a function that reads the clocks and returns the current instant. */
export const createInstantReader = (read: () => ClockReading): (() => Instant) => {
  const first = read()
  let last = { reading: first, instant: first }
  return () => {
    const reading = read()
    last = { reading, instant: advance(last, reading) }
    return last.instant
  }
}

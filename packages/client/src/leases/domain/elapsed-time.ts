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

/** A point in time of this process. `wallMs` is the sum of all forward movements of the wall clock: it never goes back. */
export type Instant = ClockReading

/** A duration that began at an instant. */
export interface Timeout {
  readonly since: Instant
  readonly ms: number
}

/** The instant of a reading. A wall clock that was set back since the last reading counts as standing still in between. */
export const advance = (last: { reading: ClockReading; instant: Instant }, reading: ClockReading): Instant => ({
  monotonicMs: last.instant.monotonicMs + Math.max(0, reading.monotonicMs - last.reading.monotonicMs),
  wallMs: last.instant.wallMs + Math.max(0, reading.wallMs - last.reading.wallMs),
})

/** Milliseconds between two instants by the clock that advanced more. Never less than the true time if either clock is right. */
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

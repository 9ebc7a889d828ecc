import type { SlotAddress } from '../../lease/request.ts'

/** A slot, and when the worker called its object, by the clock of the worker. */
export interface SlotCall extends SlotAddress {
  readonly sentAt: number
}

/** The object has not executed the call, because its clock stands still: it must restart first. */
export const CLOCK_STANDS_STILL = { kind: 'clock-stands-still' } as const
export type ClockStandsStill = typeof CLOCK_STANDS_STILL

/** An object does not notice that its clock is ahead by less. Far below the margin of a leader at the end of its lease. */
export const MIN_NOTICED_MS = 50

/**
 * By how many milliseconds the clock of an object is ahead, because it stands still; undefined: it runs. The runtime does not
 * let it go back while the object is in memory. After the clock of the machine was set back, or was ahead for a moment, the
 * object shows the latest time that it has shown until the machine shows it again.
 *
 * The clock of the worker, which may run on another machine and be wrong, is a hint that costs nothing. The clock of the
 * machine decides.
 */
export const findStandstill = (now: number, sentAt: number, readMachineClock: () => number): number | undefined => {
  // The first comparison is false for a worker of an earlier version, which sends no time.
  const aheadMs = now - sentAt > MIN_NOTICED_MS ? now - readMachineClock() : 0
  return aheadMs > MIN_NOTICED_MS ? Math.round(aheadMs) : undefined
}

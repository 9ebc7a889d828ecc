import { setTimeout as sleep } from 'node:timers/promises'
import { percentile } from '../statistics.ts'

/** What was wrong with one answer; null: nothing. */
export type Fault = string | null

/** Does one operation; undefined when there is nothing left to do. */
export type Caller = () => Promise<Fault> | undefined

export interface Measured {
  /** Operations without a fault that ended while the clock ran, a second. */
  readonly perSecond: number
  /** Milliseconds from the call to the answer. */
  readonly p50Ms: number
  readonly p99Ms: number
  readonly operations: number
  readonly faults: ReadonlyMap<string, number>
}

/**
 * Each caller begins its next operation when its last one has ended. Operations that are under way when the time is up
 * are waited for: their latencies count, because to leave them out would leave out the slow ones; for the throughput
 * they came too late.
 */
export const closedLoop = async (callers: readonly Caller[], seconds: number): Promise<Measured> => {
  const latencies: number[] = []
  const faults = new Map<string, number>()
  const started = performance.now()
  let until = started + seconds * 1_000
  let inTime = 0

  const work = async (call: Caller): Promise<void> => {
    for (let begun = performance.now(); begun < until; begun = performance.now()) {
      const answer = call()
      if (!answer) {
        // Out of work: with fewer callers than asked for, the rest of the time would measure something else.
        until = begun
        return
      }
      const fault = await answer
      const ended = performance.now()
      latencies.push(ended - begun)
      if (fault !== null) {
        faults.set(fault, (faults.get(fault) ?? 0) + 1)
        // A caller that fails at once would spin.
        await sleep(10)
      } else if (ended <= until) inTime += 1
    }
  }

  await Promise.all(callers.map(work))
  const ascending = Float64Array.from(latencies).sort()
  return {
    perSecond: inTime / ((until - started) / 1_000),
    p50Ms: percentile(ascending, 50),
    p99Ms: percentile(ascending, 99),
    operations: latencies.length,
    faults,
  }
}

import { setTimeout as sleep } from 'node:timers/promises'
import { percentile } from '../statistics.ts'
import type { Fault, Measured } from './closed-loop.ts'

export interface Rate {
  readonly perSecond: number
  readonly seconds: number
}

/** Timers are that late, and it is made up for. */
const BEHIND_MS = 20

/**
 * Begins an operation at each beat, whether or not the ones before have ended: clients that renew by their own clocks do
 * not wait for each other. A latency is taken from the moment at which the timer fired, not from the beat: a timer comes
 * up to a millisecond late, which is our doing.
 */
export const openLoop = async (
  operate: (turn: number) => Promise<Fault>,
  { perSecond, seconds }: Rate,
): Promise<Measured> => {
  const latencies: number[] = []
  const faults = new Map<string, number>()
  const underWay: Promise<void>[] = []
  const operations = Math.ceil(perSecond * seconds)
  const started = performance.now()
  let beat = started

  const work = async (turn: number) => {
    const begun = performance.now()
    const fault = await operate(turn)
    latencies.push(performance.now() - begun)
    if (fault !== null) faults.set(fault, (faults.get(fault) ?? 0) + 1)
  }
  for (let turn = 0; turn < operations; turn += 1) {
    const early = beat - performance.now()
    if (early > 0) await sleep(early)
    underWay.push(work(turn))
    // Where this process stood still, what it did not send is not sent all at once.
    beat = Math.max(beat, performance.now() - BEHIND_MS) + 1_000 / perSecond
  }
  await Promise.all(underWay)
  const ascending = Float64Array.from(latencies).sort()
  const faultless = operations - [...faults.values()].reduce((sum, count) => sum + count, 0)
  return {
    perSecond: (faultless * 1_000) / (performance.now() - started),
    p50Ms: percentile(ascending, 50),
    p99Ms: percentile(ascending, 99),
    operations,
    faults,
  }
}

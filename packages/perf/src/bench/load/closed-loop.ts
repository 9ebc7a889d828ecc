import { setTimeout as sleep } from 'node:timers/promises'
import { percentile } from '../../shared/stats.ts'
import type { VirtualUser } from './target.ts'

export interface Measurement {
  /** Successful operations per second that ended within the time. */
  readonly perSecond: number
  /** Milliseconds from the request to the response. */
  readonly p50Ms: number
  readonly p99Ms: number
  readonly operations: number
  readonly problems: ReadonlyMap<string, number>
}

/**
 * Each virtual user starts its next operation when its last one has ended. Operations in flight at the end are awaited.
 * Their latencies count, because leaving them out would leave out the slow ones; the throughput does not include them.
 */
export const runClosedLoop = async (users: readonly VirtualUser[], seconds: number): Promise<Measurement> => {
  const latencies: number[] = []
  const problems = new Map<string, number>()
  const started = performance.now()
  let until = started + seconds * 1_000
  let inTime = 0

  const work = async (operate: VirtualUser): Promise<void> => {
    for (let begun = performance.now(); begun < until; begun = performance.now()) {
      const operation = operate()
      if (!operation) {
        // With fewer users than requested, the rest of the time would measure something else.
        until = begun
        return
      }
      const problem = await operation
      const ended = performance.now()
      latencies.push(ended - begun)
      if (problem !== null) {
        problems.set(problem, (problems.get(problem) ?? 0) + 1)
        // A user that fails immediately would spin.
        await sleep(10)
      } else if (ended <= until) inTime += 1
    }
  }

  await Promise.all(users.map(work))
  const ascending = Float64Array.from(latencies).sort()
  return {
    perSecond: inTime / ((until - started) / 1_000),
    p50Ms: percentile(ascending, 50),
    p99Ms: percentile(ascending, 99),
    operations: latencies.length,
    problems,
  }
}

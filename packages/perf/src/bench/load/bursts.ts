import { percentile } from '../statistics.ts'

/** Late: it was answered, and what was asked for is not done yet. Given up: not begun when the time was over. */
export type Ended = 'done' | 'late' | 'given up' | { readonly fault: string }

/** What is under load in bursts: operations that are begun at the same moment. */
export interface BurstSubject {
  /** Called before each burst of `count`, outside of what is timed. */
  readonly prepare: (count: number) => Promise<void>
  /** One operation, by the caller of that number. One that has to wait for others may give up when `isOver`. */
  readonly operate: (caller: number, isOver: () => boolean) => Promise<Ended>
  /** Calls of something behind it; only rises. */
  readonly calls: () => Promise<number>
}

export interface BurstRun {
  /** Operations done, a second. */
  readonly perSecond: number
  /** For each operation that was begun. */
  readonly callsPerOperation: number
  /** Milliseconds, of what was done. */
  readonly p50Ms: number
  readonly p99Ms: number
  readonly done: number
  readonly late: number
  readonly faults: ReadonlyMap<string, number>
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/**
 * Bursts of `concurrent` operations, one after the other until they have taken `seconds` together; at least one. A burst
 * is over, and its clock stops, when the last of its operations has ended: no operation is cut off by the end of the
 * time, which would be an error of a whole burst where bursts take as long as the run.
 */
export const runBursts = async (
  { prepare, operate, calls }: BurstSubject,
  concurrent: number,
  seconds: number,
  now: () => number = () => performance.now(),
): Promise<BurstRun> => {
  const latencies: number[] = []
  const faults = new Map<string, number>()
  let [done, late, called, elapsedMs] = [0, 0, 0, 0]

  while (elapsedMs < seconds * 1_000) {
    await prepare(concurrent)
    const callsBefore = await calls()
    const started = now()
    const until = started + seconds * 1_000 - elapsedMs
    let lastEnded = started
    let hasEnded = false
    // Whoever comes first is never too late: a burst in which nothing was done would say nothing.
    const isOver = () => hasEnded && now() >= until
    const work = async (caller: number): Promise<void> => {
      const ended = await operate(caller, isOver).catch((error: unknown): Ended => ({ fault: messageOf(error) }))
      if (ended === 'given up') return
      lastEnded = now()
      hasEnded = true
      if (ended === 'late') late += 1
      else if (ended === 'done') {
        done += 1
        latencies.push(lastEnded - started)
      } else faults.set(ended.fault, (faults.get(ended.fault) ?? 0) + 1)
    }
    await Promise.all(Array.from({ length: concurrent }, (_, caller) => work(caller)))
    elapsedMs += lastEnded - started
    called += (await calls()) - callsBefore
    // One that fails at once would go on for ever.
    if (faults.size > 0) break
  }

  const ascending = Float64Array.from(latencies).sort()
  return {
    perSecond: done / (elapsedMs / 1_000),
    callsPerOperation: called / (done + late),
    p50Ms: percentile(ascending, 50),
    p99Ms: percentile(ascending, 99),
    done,
    late,
    faults,
  }
}

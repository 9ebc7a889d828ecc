import { setTimeout as sleep } from 'node:timers/promises'

/** Each pause is this part of the wait so far, so that a long wait costs little CPU time and ends a little later. */
const PAUSE_FRACTION = 0.1
const MIN_PAUSE_MS = 1
const MAX_PAUSE_MS = 50
/** Far more than a busy machine needs, and less than the time of a test. */
const DEFAULT_TIMEOUT_MS = 120_000

/** Polls `fact` until its result is neither false nor undefined. Throws an error with `what` after `withinMs`. */
export const until = async <Result>(
  what: string,
  fact: () => Promise<Result | false | undefined> | Result | false | undefined,
  withinMs = DEFAULT_TIMEOUT_MS,
): Promise<Result> => {
  const started = performance.now()
  for (;;) {
    const result = await fact()
    if (result !== false && result !== undefined) return result
    const waitedMs = performance.now() - started
    if (waitedMs > withinMs) throw new Error(`not within ${withinMs} ms: ${what}`)
    await sleep(Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, PAUSE_FRACTION * waitedMs)))
  }
}

/** Returns the result of `work` and its duration in milliseconds. */
export const timed = async <Result>(work: () => Promise<Result>): Promise<{ result: Result; ms: number }> => {
  const started = performance.now()
  const result = await work()
  return { result, ms: performance.now() - started }
}

import { setTimeout as sleep } from 'node:timers/promises'

/** The first pause; each one is twice as long as the one before, until the maximum. */
const MIN_POLL_MS = 1
const MAX_POLL_MS = 10

/** Polls `fact` until its result is neither false nor undefined. Throws an error with `what` after `withinMs`. */
export const until = async <Result>(
  what: string,
  fact: () => Promise<Result | false | undefined> | Result | false | undefined,
  withinMs = 20_000,
): Promise<Result> => {
  const end = performance.now() + withinMs
  for (let pauseMs = MIN_POLL_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_POLL_MS)) {
    const result = await fact()
    if (result !== false && result !== undefined) return result
    if (performance.now() > end) throw new Error(`not within ${withinMs} ms: ${what}`)
    await sleep(pauseMs)
  }
}

/** Returns the result of `work` and its duration in milliseconds. */
export const timed = async <Result>(work: () => Promise<Result>): Promise<{ result: Result; ms: number }> => {
  const started = performance.now()
  const result = await work()
  return { result, ms: performance.now() - started }
}

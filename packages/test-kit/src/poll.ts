import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 10

/** Polls `fact` until its result is neither false nor undefined. Throws an error with `what` after `withinMs`. */
export const until = async <Result>(
  what: string,
  fact: () => Promise<Result | false | undefined> | Result | false | undefined,
  withinMs = 20_000,
): Promise<Result> => {
  const end = performance.now() + withinMs
  for (;;) {
    const result = await fact()
    if (result !== false && result !== undefined) return result
    if (performance.now() > end) throw new Error(`not within ${withinMs} ms: ${what}`)
    await sleep(POLL_MS)
  }
}

/** Returns the result of `work` and its duration in milliseconds. */
export const timed = async <Result>(work: () => Promise<Result>): Promise<{ result: Result; ms: number }> => {
  const started = performance.now()
  const result = await work()
  return { result, ms: performance.now() - started }
}

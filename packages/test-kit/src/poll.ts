import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 10

/** The first answer of `fact` that is neither false nor undefined; an error that names it when `withinMs` is over. */
export const until = async <Answer>(
  what: string,
  fact: () => Promise<Answer | false | undefined> | Answer | false | undefined,
  withinMs = 20_000,
): Promise<Answer> => {
  const end = performance.now() + withinMs
  for (;;) {
    const answer = await fact()
    if (answer !== false && answer !== undefined) return answer
    if (performance.now() > end) throw new Error(`not within ${withinMs} ms: ${what}`)
    await sleep(POLL_MS)
  }
}

/** How long `work` took, in milliseconds, beside its result. */
export const timed = async <Result>(work: () => Promise<Result>): Promise<{ result: Result; ms: number }> => {
  const started = performance.now()
  const result = await work()
  return { result, ms: performance.now() - started }
}

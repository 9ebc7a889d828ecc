export interface SparinglyOptions {
  /** Milliseconds of a clock that only goes forward. */
  readonly now: () => number
  /** Resolves when nobody is to wait any longer for an answer that is still being found. */
  readonly patience: () => Promise<unknown>
}

/** The pause after an answer is so many times what it took: a twentieth of the time is spent asking, at the most. */
const PAUSES = 19
/** After what took longer than half a minute, its share of the time may grow. */
const LONGEST_PAUSE_MS = 600_000
/** What failed for lack of a database is wanted as soon as that is back. */
const LONGEST_AFTER_FAILURE_MS = 60_000

/**
 * For a question that costs the more, the more there is: who asks in the pause after an answer is given the same one, or
 * the same failure. Who asks while it is being answered waits with patience, and has the one before then; there is no
 * answer for them when there was none before. What costs nothing is as good as always new.
 */
export const throttledCache = <Answer>(
  ask: () => Promise<Answer>,
  { now, patience }: SparinglyOptions,
): (() => Promise<Answer>) => {
  let underWay: Promise<Answer> | undefined
  let latest: Promise<Answer> | undefined
  let validUntil = Number.NEGATIVE_INFINITY

  const begin = (): Promise<Answer> => {
    const begun = now()
    const answer = ask()
    const settled = (longestMs: number) => () => {
      underWay = undefined
      latest = answer
      validUntil = now() + Math.min((now() - begun) * PAUSES, longestMs)
    }
    answer.then(settled(LONGEST_PAUSE_MS), settled(LONGEST_AFTER_FAILURE_MS))
    underWay = answer
    return answer
  }

  const outOfPatience = async (): Promise<Answer> => {
    await patience()
    if (latest === undefined) throw new Error('the first answer is still being found')
    return latest
  }

  return () => {
    if (latest !== undefined && now() < validUntil) return latest
    return Promise.race([underWay ?? begin(), outOfPatience()])
  }
}

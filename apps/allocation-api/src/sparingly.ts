export interface SparinglyOptions {
  /** Milliseconds of a clock that only goes forward. */
  readonly now: () => number
}

/** The pause after an answer is so many times what it took: a twentieth of the time is spent asking, at the most. */
const PAUSES = 19
const LONGEST_PAUSE_MS = 60_000

/**
 * For a question that costs the more, the more there is: who asks while it is being answered, or in the pause after, is
 * given the same answer, or failure. What costs nothing is as good as always new; nothing is older than a minute.
 */
export const sparingly = <Answer>(ask: () => Promise<Answer>, { now }: SparinglyOptions): (() => Promise<Answer>) => {
  let latest: Promise<Answer> | undefined
  let validUntil = Number.NEGATIVE_INFINITY
  return () => {
    if (latest !== undefined && now() < validUntil) return latest
    const begun = now()
    const answer = ask()
    latest = answer
    validUntil = Number.POSITIVE_INFINITY
    const pause = () => {
      validUntil = now() + Math.min((now() - begun) * PAUSES, LONGEST_PAUSE_MS)
    }
    answer.then(pause, pause)
    return answer
  }
}

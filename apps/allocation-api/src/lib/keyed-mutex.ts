/** Lets one at a time through, for each key. */
export interface Turns {
  /** Waits for the turn; returns what gives it on. Null: the signal came first. */
  take(key: string, signal: AbortSignal): Promise<(() => void) | null>
}

export const createTurns = (): Turns => {
  const last = new Map<string, Promise<void>>()
  return {
    take: async (key, signal) => {
      const before = last.get(key) ?? Promise.resolve()
      const own = Promise.withResolvers<void>()
      // Whoever gives up goes out of the way, but those behind wait for those before all the same.
      const done = before.then(() => own.promise)
      last.set(key, done)
      void done.then(() => {
        if (last.get(key) === done) last.delete(key)
      })
      const gaveUp = Promise.withResolvers<true>()
      const giveUp = () => gaveUp.resolve(true)
      signal.addEventListener('abort', giveUp, { once: true })
      if (signal.aborted) giveUp()
      const isOver = await Promise.race([before.then(() => false), gaveUp.promise])
      signal.removeEventListener('abort', giveUp)
      if (!isOver) return own.resolve
      own.resolve()
      return null
    },
  }
}

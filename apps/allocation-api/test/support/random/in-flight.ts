/** Counts running and paused operations, and waits until no operation can continue. */
export const createInFlight = () => {
  const waiters = new Set<() => void>()
  const counts = { running: 0, paused: 0 }
  const notify = () => {
    for (const check of waiters) check()
  }
  const during = async <Result>(state: keyof typeof counts, work: () => Promise<Result>): Promise<Result> => {
    counts[state] += 1
    notify()
    return work().finally(() => {
      counts[state] -= 1
      notify()
    })
  }
  const until = async (condition: () => boolean): Promise<void> => {
    // The next sync can start a few promises after the previous one ends, so the condition must hold twice.
    for (let times = 0; times < 2; times += 1) {
      await new Promise(setImmediate)
      if (condition()) continue
      times = -1
      await new Promise<void>(resolve => {
        const check = () => {
          if (!condition()) return
          waiters.delete(check)
          resolve()
        }
        waiters.add(check)
      })
    }
  }
  return {
    during,
    /** Resolves when no operation is in flight. */
    untilIdle: () => until(() => counts.running === 0),
    /** Resolves when no operation is in flight, or one is paused and blocks the others. */
    untilIdleOrPaused: () => until(() => counts.running === 0 || counts.paused > 0),
  }
}

export type InFlight = ReturnType<typeof createInFlight>

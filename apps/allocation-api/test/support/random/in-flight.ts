/** How many things are under way or kept waiting, and a promise for when that is as wished. */
export const createInFlight = () => {
  const waiting = new Set<() => void>()
  const counts = { working: 0, held: 0 }
  const changed = () => {
    for (const look of waiting) look()
  }
  const during = async <Result>(what: keyof typeof counts, work: () => Promise<Result>): Promise<Result> => {
    counts[what] += 1
    changed()
    return work().finally(() => {
      counts[what] -= 1
      changed()
    })
  }
  const until = async (isSo: () => boolean): Promise<void> => {
    // One pass may end to make place for the next, a few promises later: what is so must be so twice.
    for (let times = 0; times < 2; times += 1) {
      await new Promise(setImmediate)
      if (isSo()) continue
      times = -1
      await new Promise<void>(resolve => {
        const look = () => {
          if (!isSo()) return
          waiting.delete(look)
          resolve()
        }
        waiting.add(look)
      })
    }
  }
  return {
    during,
    /** Nothing is under way. */
    idle: () => until(() => counts.working === 0),
    /** Nothing moves: what is under way, if anything, is kept waiting. */
    still: () => until(() => counts.working === 0 || counts.held > 0),
  }
}

export type UnderWay = ReturnType<typeof createInFlight>

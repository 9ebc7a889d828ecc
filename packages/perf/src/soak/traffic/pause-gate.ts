import { setTimeout as sleep } from 'node:timers/promises'

/** Where clients stop between two things that they do, for as long as everything is to be at rest. */
export interface Quiescer {
  readonly isOver: boolean
  /** One thing, from its first request to its last answer; false: it is over, nothing was done. */
  readonly pass: (work: () => Promise<void>) => Promise<boolean>
  /** Resolves when nothing is under way any more; false: something still was after `withinMs`. */
  readonly close: (withinMs: number) => Promise<boolean>
  readonly open: () => void
  readonly end: () => void
}

const LOOK_EVERY_MS = 10

export const createQuiescer = (): Quiescer => {
  let isOver = false
  let underWay = 0
  let opened = Promise.resolve()
  let open = () => {}
  return {
    get isOver() {
      return isOver
    },
    async pass(work) {
      await opened
      if (isOver) return false
      underWay += 1
      await work().finally(() => {
        underWay -= 1
      })
      return !isOver
    },
    async close(withinMs) {
      opened = new Promise(resolve => {
        open = resolve
      })
      for (const end = performance.now() + withinMs; underWay > 0; await sleep(LOOK_EVERY_MS))
        if (performance.now() > end) return false
      return true
    },
    open: () => open(),
    end() {
      isOver = true
      open()
    },
  }
}

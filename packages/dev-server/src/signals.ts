import { isOrphanOf, launchers } from './parent-process.ts'

/** How a start is told to end: first in order, then at once. */
export interface Interrupts {
  readonly stop: AbortSignal
  readonly hurry: AbortSignal
}

/** One press of Ctrl-C can arrive twice: from the terminal, and passed on by the package manager. */
const SAME_PRESS_MS = 500
const PARENT_CHECK_MS = 500

export function watchInterrupts(): Interrupts {
  const stop = new AbortController()
  const hurry = new AbortController()
  let firstAt = 0
  const interrupt = () => {
    if (!stop.signal.aborted) {
      firstAt = performance.now()
      stop.abort()
    } else if (performance.now() - firstAt > SAME_PRESS_MS) hurry.abort()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt)

  // The package manager is gone: there is nobody left whose Ctrl-C would reach us.
  const above = launchers()
  const watch = setInterval(() => {
    if (!isOrphanOf(above)) return
    clearInterval(watch)
    stop.abort()
  }, PARENT_CHECK_MS)
  watch.unref()
  return { stop: stop.signal, hurry: hurry.signal }
}

import { isOrphaned, packageManagerPids } from './parent-process.ts'

/** The first signal requests a graceful shutdown, the second an immediate one. */
export interface ShutdownSignals {
  readonly stop: AbortSignal
  readonly forceStop: AbortSignal
}

/** One Ctrl-C can arrive twice: from the terminal and, forwarded, from the package manager. */
export const DUPLICATE_SIGNAL_MS = 500
const PARENT_CHECK_INTERVAL_MS = 500

export function watchShutdownSignals(): ShutdownSignals {
  const stop = new AbortController()
  const forceStop = new AbortController()
  let firstAt = 0
  const interrupt = () => {
    if (!stop.signal.aborted) {
      firstAt = performance.now()
      stop.abort()
    } else if (performance.now() - firstAt > DUPLICATE_SIGNAL_MS) forceStop.abort()
  }
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, interrupt)

  // When the package manager is killed, a Ctrl-C no longer reaches this process.
  const parents = packageManagerPids()
  const watch = setInterval(() => {
    if (!isOrphaned(parents)) return
    clearInterval(watch)
    stop.abort()
  }, PARENT_CHECK_INTERVAL_MS)
  watch.unref()
  return { stop: stop.signal, forceStop: forceStop.signal }
}

import { setTimeout as sleep } from 'node:timers/promises'

export interface PeriodicOptions {
  readonly everyMs: number
  readonly onError: (error: unknown) => void
}

/**
 * Runs `work` at once and then again `everyMs` after each end, until stopped. An error is told and does not end it.
 * `stop` waits for a run under way, whose signal it aborts.
 */
export const runPeriodically = (
  work: (signal: AbortSignal) => Promise<void>,
  { everyMs, onError }: PeriodicOptions,
) => {
  const stopped = new AbortController()
  const run = async () => {
    while (!stopped.signal.aborted) {
      await work(stopped.signal).catch(onError)
      await sleep(everyMs, undefined, { signal: stopped.signal }).catch(() => {})
    }
  }
  const ended = run()
  return {
    async stop(): Promise<void> {
      stopped.abort()
      await ended
    },
  }
}

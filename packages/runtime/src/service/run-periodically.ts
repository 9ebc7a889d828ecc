import { setTimeout as sleep } from 'node:timers/promises'

export interface PeriodicOptions {
  /** Milliseconds from the end of a run to the start of the next. */
  readonly intervalMs: number
  readonly onError: (error: unknown) => void
}

/**
 * Runs `job` now and then periodically until `stop`, which aborts the signal of a run in progress and waits for its end. An
 * error is reported and does not stop the schedule.
 */
export const runPeriodically = (
  job: (signal: AbortSignal) => Promise<void>,
  { intervalMs, onError }: PeriodicOptions,
) => {
  const controller = new AbortController()
  const { signal } = controller
  const loop = async () => {
    while (!signal.aborted) {
      await job(signal).catch(onError)
      await sleep(intervalMs, undefined, { signal }).catch(() => {})
    }
  }
  const ended = loop()
  return {
    async stop(): Promise<void> {
      controller.abort()
      await ended
    },
  }
}

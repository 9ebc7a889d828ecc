import { setTimeout as wait } from 'node:timers/promises'
import { isDatabaseUnavailable } from './errors.ts'
import { type ConnectionConfig, explainStartupError, StartupError } from './startup-errors.ts'

export interface DatabaseWait {
  /** Why the last attempt failed. It has no secrets. */
  readonly reason: string
  /** Milliseconds since the first attempt. */
  readonly waitedMs: number
}

/** The connection is described for the explanation of errors. */
export interface WaitOptions extends ConnectionConfig {
  /** Called when the pause grows or the reason changes, and then once a minute. */
  readonly onWait: (wait: DatabaseWait) => void
  /** For tests. */
  readonly sleep?: (ms: number) => Promise<unknown>
}

const MIN_PAUSE_MS = 250
/** Below the 5 s in which the service is ready after the database is. */
const MAX_PAUSE_MS = 4_000
const REPORT_INTERVAL_MS = 60_000

/**
 * Calls `connect` again while the database is unavailable, with growing pauses and without an end. Any other error rejects:
 * with a `StartupError` if the operator can correct it.
 */
export const waitForDatabase = async (
  connect: () => Promise<void>,
  { onWait, sleep = wait, ...config }: WaitOptions,
): Promise<void> => {
  const startedAt = performance.now()
  let reported = { reason: '', at: Number.NEGATIVE_INFINITY }
  for (let pauseMs = MIN_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    try {
      return await connect()
    } catch (error) {
      const explanation = explainStartupError(error, config)
      if (explanation.isFinal) throw new StartupError(explanation.text)
      if (!isDatabaseUnavailable(error)) throw error
      const { text: reason } = explanation
      const now = performance.now()
      if (pauseMs < MAX_PAUSE_MS || reason !== reported.reason || now - reported.at >= REPORT_INTERVAL_MS) {
        reported = { reason, at: now }
        onWait({ reason, waitedMs: now - startedAt })
      }
    }
    await sleep(pauseMs)
  }
}

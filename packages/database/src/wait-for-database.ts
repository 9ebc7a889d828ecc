import { setTimeout as sleep } from 'node:timers/promises'
import { isConnectionRejected, isDatabaseUnavailable } from './errors.ts'
import { TimeoutError } from './with-timeout.ts'

export interface WaitOptions {
  /** Milliseconds to wait for a database that is unavailable. */
  readonly timeoutMs: number
  readonly onRetry: (error: unknown) => void
}

const RETRY_PAUSE_MS = 250

const errorCode = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'no answer'

/**
 * Retries `connect` while the database is unavailable. Rejects with a message for the operator after `timeoutMs`, and
 * immediately if the server rejects the user or the database of the connection string.
 */
export const waitForDatabase = async (
  connect: () => Promise<void>,
  { timeoutMs, onRetry }: WaitOptions,
): Promise<void> => {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    const attempt = connect().then(
      () => null,
      (error: unknown) => ({ error }),
    )
    const noAnswer = { error: new TimeoutError('no answer') }
    const hasEnded = new AbortController()
    const { signal } = hasEnded
    const timeout = sleep(Math.max(0, deadline - performance.now()), noAnswer, { signal }).catch(() => noAnswer)
    // A pending timer would keep the process alive after its stop.
    const failure = await Promise.race([attempt, timeout]).finally(() => hasEnded.abort())
    if (!failure) return
    const { error } = failure
    if (isConnectionRejected(error)) throw new Error(`the server rejected PDM_DATABASE_URL (${errorCode(error)})`)
    if (!isDatabaseUnavailable(error)) throw error
    if (performance.now() >= deadline) {
      throw new Error(`PDM_DATABASE_URL could not be reached within ${timeoutMs / 1_000} s (${errorCode(error)})`)
    }
    onRetry(error)
    await sleep(RETRY_PAUSE_MS)
  }
}

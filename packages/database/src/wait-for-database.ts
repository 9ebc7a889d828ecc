import { setTimeout as sleep } from 'node:timers/promises'
import { DatabaseTimeout, isDatabaseUnavailable, isRefusedConnection } from './client.ts'

export interface WaitOptions {
  /** Milliseconds that the database may stay away. */
  readonly patienceMs: number
  readonly onRetry: (error: unknown) => void
}

const RETRY_MS = 250

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'no answer'

/**
 * Tries `work` until it succeeds, as long as it fails because the database is away. Rejects in words for an operator
 * when patience is over, and at once when the server refuses what the connection string names.
 */
export const waitForDatabase = async (
  work: () => Promise<void>,
  { patienceMs, onRetry }: WaitOptions,
): Promise<void> => {
  const giveUpAt = performance.now() + patienceMs
  for (;;) {
    const left = Math.max(0, giveUpAt - performance.now())
    const tried = work().then(
      () => null,
      (error: unknown) => ({ error }),
    )
    const failure = await Promise.race([tried, sleep(left, { error: new DatabaseTimeout('no answer') })])
    if (!failure) return
    const { error } = failure
    if (isRefusedConnection(error)) throw new Error(`the server refused PDM_DATABASE_URL (${codeOf(error)})`)
    if (!isDatabaseUnavailable(error)) throw error
    if (performance.now() >= giveUpAt) {
      throw new Error(`PDM_DATABASE_URL could not be reached within ${patienceMs / 1_000} s (${codeOf(error)})`)
    }
    onRetry(error)
    await sleep(RETRY_MS)
  }
}

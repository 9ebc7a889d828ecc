import type { Sql } from './client.ts'
import { withTimeout } from './with-timeout.ts'

/**
 * Returns a function that reports whether the database answers within `timeoutMs`. Concurrent calls share one statement, so
 * that probes do not pile up at a database that hangs.
 */
export const createHealthCheck = (sql: Sql, timeoutMs: number): (() => Promise<boolean>) => {
  let inFlight: Promise<boolean> | null = null
  const check = async () => {
    try {
      await withTimeout(sql`select 1`, timeoutMs)
      return true
    } catch {
      return false
    } finally {
      inFlight = null
    }
  }
  return () => {
    inFlight ??= check()
    return inFlight
  }
}

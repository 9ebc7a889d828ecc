import type { Sql } from './client.ts'
import { withTimeout } from './time.ts'

export interface ConnectionCount {
  /** Sessions at the server, of all databases and clients. */
  readonly open: number
  /** Sessions that the server accepts from users without special privileges. */
  readonly max: number
}

/** Counts the sessions of the server. Needs no privilege. */
export const countConnections = async (sql: Sql, timeoutMs: number): Promise<ConnectionCount> => {
  const [row] = await withTimeout(
    sql<ConnectionCount[]>`
      select sum(numbackends)::int as open,
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
          - coalesce(current_setting('reserved_connections', true), '0')::int as max
      from pg_stat_database`,
    timeoutMs,
  )
  if (!row) throw new Error('pg_stat_database has no row')
  return row
}

export interface HealthCheckOptions {
  /** Milliseconds after which a check that has not ended counts as failed. */
  readonly timeoutMs: number
  /** Milliseconds for which a result is returned again, so that probes cause a bounded number of checks. */
  readonly keepMs: number
}

/** Returns a function that reports whether `check` succeeds in time. Concurrent calls share one check. */
export const createHealthCheck = (
  check: () => PromiseLike<unknown>,
  { timeoutMs, keepMs }: HealthCheckOptions,
): (() => Promise<boolean>) => {
  let latest: Promise<boolean> | undefined
  let validUntil = Number.POSITIVE_INFINITY
  const run = async () => {
    try {
      await withTimeout(Promise.resolve(check()), timeoutMs)
      return true
    } catch {
      return false
    } finally {
      validUntil = performance.now() + keepMs
    }
  }
  return () => {
    if (latest === undefined || performance.now() >= validUntil) {
      validUntil = Number.POSITIVE_INFINITY
      latest = run()
    }
    return latest
  }
}

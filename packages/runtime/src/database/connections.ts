import type { Sql } from './client.ts'
import { withTimeout } from './with-timeout.ts'

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

import type { Sql } from './client.ts'

/** Time in SQL. Every decision uses the database's clock, never the clock of a replica. */
export const timeSql = (sql: Sql) => ({
  /** The start of the statement, truncated to milliseconds as on the wire. */
  now: sql`date_trunc('milliseconds', statement_timestamp())`,
  milliseconds: (ms: number) => sql`${ms}::float8 * interval '1 millisecond'`,
})

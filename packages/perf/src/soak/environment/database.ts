import type { Sql } from '@pool/runtime/database/client'
import type { ReplayRow, TableRow } from '../checks/history.ts'

export interface Snapshot {
  /** Milliseconds since the epoch before and after the snapshot. */
  readonly start: number
  readonly end: number
  readonly table: readonly TableRow[]
  readonly history: readonly ReplayRow[]
  /** Names whose desired records the provider does not have yet. */
  readonly due: number
}

/** The names that clients have. */
const selectTable = (sql: Sql) => sql<TableRow[]>`
  select subdomain, state, created_by as owner, host(load_balancer_ip) as address from pool_allocations
  where state in ('reserved', 'active')`

const historyColumns = (sql: Sql) => sql`
  id, subdomain, event, from_state as "from", to_state as "to", created_by as owner, request_id as "requestId", detail,
  extract(epoch from at)::float8 * 1000 as at, deleted_records as "deletedRecords",
  renewal_count as "renewalCount", extract(epoch from renewed_until)::float8 * 1000 as "renewedUntil"`

export const readTable = (sql: Sql): Promise<TableRow[]> => selectTable(sql)

/** The history of these names, and every entry with deleted records. */
export const readDeletions = (sql: Sql, subdomains: readonly string[]): Promise<ReplayRow[]> => sql<ReplayRow[]>`
  select ${historyColumns(sql)} from allocation_history
  where subdomain in ${sql(subdomains)} or deleted_records is not null order by id`

/** Reads the table, the history and the due names in one transaction. */
export const takeSnapshot = async (sql: Sql): Promise<Snapshot> => {
  const start = Date.now()
  const read = await sql.begin('isolation level repeatable read read only', async transaction => {
    const table = await transaction<TableRow[]>`${selectTable(sql)}`
    const history = await transaction<ReplayRow[]>`
      select ${historyColumns(sql)} from allocation_history order by id`
    const [row] = await transaction<{ due: number }[]>`
      select count(*) as due from dns_names where applied_version < version`
    return { table, history, due: row?.due ?? 0 }
  })
  return { start, end: Date.now(), ...read }
}

/** The number of connections per `application_name`, including the observer's. */
export const countConnections = async (sql: Sql): Promise<ReadonlyMap<string, number>> => {
  const rows = await sql<{ name: string; count: number }[]>`
    select application_name as name, count(*) as count from pg_stat_activity
    where backend_type = 'client backend' group by 1`
  return new Map(rows.map(({ name, count }) => [name, count]))
}

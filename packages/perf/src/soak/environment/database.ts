import type { Sql } from '@pool/database/client'
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

export const readTable = (sql: Sql): Promise<TableRow[]> => sql<TableRow[]>`
  select subdomain, state, created_by as owner, host(load_balancer_ip) as address from pool_allocations`

/** Reads the table, the history and the due names in one transaction. */
export const takeSnapshot = async (sql: Sql): Promise<Snapshot> => {
  const start = Date.now()
  const read = await sql.begin('isolation level repeatable read read only', async transaction => {
    const table = await transaction<TableRow[]>`
      select subdomain, state, created_by as owner, host(load_balancer_ip) as address from pool_allocations`
    const history = await transaction<ReplayRow[]>`
      select id, subdomain, event, from_state as "from", to_state as "to", created_by as owner,
        request_id as "requestId", detail
      from allocation_history order by id`
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

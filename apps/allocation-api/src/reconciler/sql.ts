import type { Sql } from '@pool/database/client'

/** What the history tells of a name's records. */
export type DnsEvent = 'published' | 'withdrawn' | 'failing' | 'repaired'

/** `items` as rows named `item`; one JSON parameter, whatever their number. */
export const rowsOf = (sql: Sql, items: readonly object[]) => sql`
  jsonb_to_recordset(${sql.json(items as never)}) as item
    (subdomain text, version bigint, desired jsonb, event text, detail text, failure text, reason text, "pauseMs" float8)`

/** As `rowsOf`, of names of which nothing but their version is needed. */
export const versionsOf = (sql: Sql, names: readonly { readonly subdomain: string; readonly version: number }[]) =>
  rowsOf(
    sql,
    names.map(({ subdomain, version }) => ({ subdomain, version })),
  )

/** What a plan is made from. */
export const desiredColumns = (sql: Sql) => sql`
  subdomain, version, desired, owned, previous_records as previous, attempted_version > applied_version as "hasInFlightWrite"`

/** Name and type of each desired record set of `item`, one object a set. */
export const keysOf = (sql: Sql) => sql`(
  select coalesce(jsonb_agg(jsonb_build_object('name', wanted->'name', 'type', wanted->'type')), '[]')
  from jsonb_array_elements(item.desired) wanted)`

/** One history row for each row of `marked`. */
export const historyOfDns = (sql: Sql) => sql`
  insert into allocation_history (pool_domain, subdomain, event, from_state, to_state, actor, created_by, detail)
  select zone, subdomain, event, state, state, 'convergence', '', detail
  from (select *, case when desired = '[]' then 'none' else 'active' end as state from marked) told`

import type { Sql } from '@pool/database/client'
import { labelSql } from '../labels.ts'
import { POOL } from './standard.ts'

interface Definition {
  readonly owner: string
  readonly name: string
  /** What makes it again, said of its table. */
  readonly definition: string
}

const TABLES = ['pool_allocations', 'allocation_history', 'dns_names']

/** What is checked row by row, and kept up row by row: dropped while rows are written, and made again afterwards. */
const strip = async (sql: Sql): Promise<{ readonly restore: string[][] }> => {
  const constraints = await sql<Definition[]>`
    select conrelid::regclass::text as owner, conname as name, pg_get_constraintdef(oid) as definition
    from pg_constraint where conrelid = any(string_to_array(${TABLES.join()}, ',')::regclass[]) and contype in ('p', 'c')
    order by 1, 2`
  const indexes = await sql<Definition[]>`
    select tablename as owner, indexname as name, indexdef as definition from pg_indexes
    where tablename = any(string_to_array(${TABLES.join()}, ',')) and not exists (
      select from pg_constraint where conname = indexname)
    order by 1, 2`
  for (const { owner, name } of constraints) await sql.unsafe(`alter table ${owner} drop constraint ${name}`)
  for (const { name } of indexes) await sql.unsafe(`drop index ${name}`)
  const restore = TABLES.map(table => [
    ...constraints
      .filter(({ owner }) => owner === table)
      // Checks hold for every row to come. To look at the old ones again would cost as much as before.
      .map(({ owner, name, definition }) =>
        definition.startsWith('CHECK')
          ? `alter table ${owner} add constraint ${name} ${definition} not valid`
          : `alter table ${owner} add constraint ${name} ${definition}`,
      ),
    ...indexes.filter(({ owner }) => owner === table).map(({ definition }) => definition),
  ])
  return { restore }
}

/** Half of the rows reserved, half active. */
const IS_ACTIVE = 'n % 2 = 0'
const numbers = (rows: number) => `generate_series(0::bigint, ${rows - 1}::bigint) n`

/** As the verbs leave them; what is active has been published. In the order of n, which is not that of any index by name. */
const writesOf = (rows: number): readonly string[] => [
  `insert into pool_allocations
     (pool_domain, subdomain, state, reserved_at, expires_at, reservation_token, created_by, sovereign_fqdn,
      load_balancer_ip, committed_at)
   select '${POOL}', ${labelSql('n')}, case when ${IS_ACTIVE} then 'active' else 'reserved' end, now(),
     case when not ${IS_ACTIVE} then now() + interval '1 day' end, gen_random_uuid(), 'bench',
     case when ${IS_ACTIVE} then ${labelSql('n')} || '.${POOL}' end, case when ${IS_ACTIVE} then '203.0.113.10'::inet end,
     case when ${IS_ACTIVE} then now() end
   from ${numbers(rows)}`,
  `insert into allocation_history
     (pool_domain, subdomain, event, from_state, to_state, actor, address, created_by, request_id)
   select '${POOL}', ${labelSql('n')}, event, from_state, to_state, actor, '127.0.0.1', 'bench', n::text
   from ${numbers(rows)}, (values
       ('reserved', 'none', 'reserved', 'in-cluster', true),
       ('committed', 'reserved', 'active', 'in-cluster', false),
       ('published', 'active', 'active', 'convergence', false)
     ) step (event, from_state, to_state, actor, of_all)
   where of_all or ${IS_ACTIVE}`,
  `insert into dns_names (zone, subdomain, version, desired, changed_at, applied_version, next_attempt_at)
   select '${POOL}', ${labelSql('n')}, 1, '[]', now(), 1, now() from ${numbers(rows)} where ${IS_ACTIVE}`,
]

/**
 * A pool of so many rows with the history and the DNS state that belong to them. Tables are filled side by side, without
 * indexes and checks, which are then made again; afterwards all of it is on disk, and the planner knows it.
 */
export const seedPool = async (sql: Sql, rows: number): Promise<void> => {
  const { restore } = await strip(sql)
  const quickly = "set local synchronous_commit = off; set local maintenance_work_mem = '1GB'"
  await Promise.all(
    writesOf(rows).map((write, index) =>
      sql.begin(async tx => {
        await tx.unsafe(quickly)
        await tx.unsafe(write)
        for (const statement of restore[index] ?? []) await tx.unsafe(statement)
      }),
    ),
  )
  for (const table of TABLES) await sql.unsafe(`vacuum (analyze, freeze) ${table}`)
  await sql`checkpoint`
}

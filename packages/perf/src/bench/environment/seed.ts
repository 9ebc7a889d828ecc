import type { Sql } from '@pool/database/client'

export const POOL = 'pool.test'

/** Odd, so that multiplying by it modulo 2^32 is a bijection. The golden ratio spreads neighbours far. */
const SPREAD = 0x9e37_79b1

/**
 * The label of the n-th name (0 to 2^32 - 1). Labels are unique, and n and n + 1 are far apart in the index, as names that
 * people choose are. Each is a valid subdomain that is not reserved.
 */
export const toLabel = (n: number): string => `t${(Math.imul(n, SPREAD) >>> 0).toString(16).padStart(8, '0')}`

/** The same in SQL, for an expression of type bigint. */
export const toLabelSql = (n: string): string => `'t' || lpad(to_hex((${n} * ${SPREAD}) & 4294967295), 8, '0')`

export interface Reservation {
  readonly subdomain: string
  readonly reservationToken: string
}

/** Creates the reservations of the labels from `from` on, not timed. */
export type Reserve = (from: number, count: number) => Promise<readonly Reservation[]>

/** Writes rows as `reserve` would have left them, without their history. */
export const reserveInSql =
  (sql: Sql): Reserve =>
  async (from, count) => {
    const rows = await sql.unsafe<Reservation[]>(
      `with reservations as materialized (
         select ${toLabelSql('n')} as subdomain, gen_random_uuid()::text as token
         from generate_series($2::bigint, $2::bigint + $3::bigint - 1) n
       ), inserted as (
         insert into pool_allocations
           (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by)
         select $1, subdomain, 'reserved', now(), now() + interval '1 day', sha256(token::bytea), 'bench'
         from reservations
       )
       select subdomain, token as "reservationToken" from reservations`,
      [POOL, from, count],
    )
    await sql`analyze pool_allocations`
    return rows
  }

/** Half of the rows are reserved, half are active with their records applied. */
export const insertPool = async (sql: Sql, rows: number): Promise<void> => {
  await sql.unsafe(
    `insert into pool_allocations
       (pool_domain, subdomain, state, reserved_at, expires_at, token_hash, created_by, sovereign_fqdn,
        load_balancer_ip, committed_at)
     select $1, label, case when active then 'active' else 'reserved' end, now(),
       case when not active then now() + interval '1 day' end, sha256(gen_random_uuid()::text::bytea), 'bench',
       case when active then label || '.' || $1 end, case when active then '203.0.113.10'::inet end,
       case when active then now() end
     from (select ${toLabelSql('n')} as label, n % 2 = 0 as active
           from generate_series(0::bigint, $2::bigint - 1) n) numbered`,
    [POOL, rows],
  )
  await sql`
    insert into dns_names (zone, subdomain, version, desired, changed_at, applied_version, next_attempt_at)
    select pool_domain, subdomain, 1, '[]', now(), 1, now() from pool_allocations where state = 'active'`
  await sql`vacuum analyze pool_allocations`
  await sql`vacuum analyze dns_names`
}

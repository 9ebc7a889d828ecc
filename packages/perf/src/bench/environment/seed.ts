import type { Sql } from '@pool/runtime/database/client'

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

/** The pools of `insertNames`. */
export const POOLS = [POOL, 'second.test', 'third.test'] as const

/** What the name with a number has, in JavaScript as in `insertNames`. */
export const toPool = (n: number): string => POOLS[n % POOLS.length] ?? POOL
export const ADDRESSES = 65_536
export const toAddress = (n: number): string => `10.0.${Math.floor((n % ADDRESSES) / 256)}.${n % 256}`
export const CREATORS = 500
export const toCreator = (n: number): string => `team-${n % CREATORS}`

/**
 * Names in every pool and state, without their history: of 1,000 names, 100 are reserved, 10 in their cool-off and one is held by
 * a deployment. The records of one of 1,000 are rejected, and those of another one are not published yet. A service does not
 * try to publish them during a run.
 */
export const insertNames = async (sql: Sql, count: number): Promise<void> => {
  await sql`
    with lineage as (
      insert into lineages (id, sovereign_fqdn, created_at, infrastructure_changed_at, has_infrastructure)
      values (gen_random_uuid(), 'held.test', now(), now(), true) returning id
    )
    insert into pool_allocations (pool_domain, subdomain, state, reserved_at, expires_at, cool_off_until, lineage_id, token_hash,
      created_by, sovereign_fqdn, load_balancer_ip, committed_at)
    select pool, label, state, now(), case when state = 'reserved' then now() + interval '1 day' end,
      case when state = 'released' and n % 1000 <> 9 then now() + interval '1 day' end,
      case when n % 1000 = 9 then (select id from lineage) end,
      sha256(label::bytea), 'team-' || n % ${CREATORS}::int, case when state = 'active' then label || '.' || pool end,
      case when state = 'active' then '10.0.0.0'::inet + n % ${ADDRESSES}::int end, case when state = 'active' then now() end
    from (
      select n, ${sql.unsafe(toLabelSql('n'))} as label, (string_to_array(${POOLS.join(' ')}, ' '))[n % 3 + 1] as pool,
        case when n % 10 = 3 then 'reserved' when n % 100 = 7 or n % 1000 = 9 then 'released' else 'active' end as state
      from generate_series(0::bigint, ${count - 1}::bigint) n
    ) names`
  await sql`
    insert into dns_names
      (zone, subdomain, version, desired, changed_at, applied_version, next_attempt_at, attempts, failure, last_error)
    select pool, label, 1, '[]', now(), case when n % 1000 in (5, 6) then 0 else 1 end, now() + interval '1 day',
      (n % 1000 = 5)::int, case when n % 1000 = 5 then 'rejected' end, case when n % 1000 = 5 then 'not accepted' end
    from (
      select n, ${sql.unsafe(toLabelSql('n'))} as label, (string_to_array(${POOLS.join(' ')}, ' '))[n % 3 + 1] as pool
      from generate_series(0::bigint, ${count - 1}::bigint) n
      where n % 10 <> 3 and n % 100 <> 7 and n % 1000 <> 9
    ) active`
  await sql`vacuum analyze pool_allocations`
  await sql`vacuum analyze dns_names`
}

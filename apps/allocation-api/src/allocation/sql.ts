import type { Fragment, Sql } from '@pool/runtime/database/client'
import { timeSql } from '@pool/runtime/database/time'
import type { Caller, PoolName } from '../naming/naming.ts'
import { newVersionColumns } from '../reconciler/repository.ts'

/** The parts that the statements over pool_allocations (alias `a`) share. */
export const allocationSql = (sql: Sql) => {
  const { now, milliseconds } = timeSql(sql)
  const reservationColumns = sql`
    a.pool_domain as "poolDomain", a.subdomain, a.reserved_at as "reservedAt", a.expires_at as "expiresAt",
    a.created_by as "createdBy"`
  const columns = sql`
    ${reservationColumns}, a.state, a.sovereign_fqdn as "sovereignFQDN", host(a.load_balancer_ip) as "loadBalancerIP",
    a.committed_at as "committedAt"`
  /**
   * Whether the name of the row `held` was active before. Its row in dns_names may have been deleted since, and the entry
   * of its release too.
   */
  const wasHeldBefore = sql`(
    exists (
      select from allocation_history h
      where h.pool_domain = held.pool_domain and h.subdomain = held.subdomain
        and h.event = 'released' and h.from_state = 'active')
    or exists (
      select from former_names f where f.pool_domain = held.pool_domain and f.subdomain = held.subdomain))`
  const isLive = sql`(a.state = 'active' or a.expires_at > ${now})`
  /** Released, or an expired reservation. */
  const isLapsed = sql`(a.state = 'released' or a.expires_at <= ${now})`
  const freeAt = sql`greatest(a.expires_at, a.cool_off_until)`
  return {
    /** What every allocation has, and the expiry. */
    reservationColumns,
    columns,
    /** The columns of `a` left joined with dns_names as `d`. */
    columnsWithDns: sql`${columns}, d.version, d.applied_version as "appliedVersion", d.last_error as "lastError"`,
    whereName: ({ poolDomain, subdomain }: PoolName) =>
      sql`a.pool_domain = ${poolDomain} and a.subdomain = ${subdomain}`,
    /** Whether a client has the name. An expired reservation counts as free, even before the sweeper deletes its row. */
    isLive,
    isLapsed,
    /** When a name that lapsed becomes free, unless a lineage holds it. */
    freeAt,
    isFree: sql`(a.state <> 'active' and a.lineage_id is null and ${freeAt} <= ${now})`,
    /** What `check` reports; null if the name is free. */
    nameState: sql`
      case
        when ${isLive} then a.state
        when a.lineage_id is not null then case when a.committed_at is null then 'reserved' else 'active' end
        when ${freeAt} > ${now} then 'cooling-off'
        when a.state = 'pool' then a.state
      end`,
    /** Null unless the name can be in its cool-off. */
    availableAt: sql`case when a.cool_off_until > ${now} then ${freeAt} end`,
    isCoolingOff: sql`(${isLapsed} and a.lineage_id is null and ${freeAt} > ${now})`,

    /**
     * Sets the desired records of the names in `rows`. It is an upsert because the row in dns_names can be newer than the
     * statement's snapshot: a release that waited for the row lock of a commit sees its allocation, but not its records.
     * For the same reason it draws the version of an existing row after it has locked the row.
     *
     * `holder`: `new` for a commit. If the name had an earlier holder, every record set at or below it that is not in
     * `desired` is deleted, whichever writer created it. `same` for a change of an active name and for a release; a release
     * has no desired records, and deletes all of them in any case. `desired`: JSON, which can be a column of `rows`.
     *
     * It locks rows in name order, so concurrent batches cannot deadlock.
     */
    setDesiredRecords: (rows: Fragment, desired: Fragment, holder: 'new' | 'same') => sql`
      insert into dns_names as d (zone, subdomain, version, desired, changed_at, next_attempt_at, purge_version)
      select pool_domain, subdomain, nextval('dns_version'), ${desired}, now(), now(),
        ${holder === 'new' ? sql`case when ${wasHeldBefore} then 1 else 0 end` : sql`0`}
      from (select * from ${rows}) held order by pool_domain collate "C", subdomain collate "C"
      on conflict (zone, subdomain) do update set
        purge_version = ${holder === 'new' ? sql`d.version + 1` : sql`d.purge_version`},
        ${newVersionColumns(sql, sql`excluded.desired`, sql`excluded.changed_at`)}
      returning zone, subdomain, version`,

    /** What the entry that ends a reservation has of its renewals, if there were any: their number, and the last expiry. */
    renewalColumns: (count: Fragment, lastExpiry: Fragment) =>
      sql`nullif(${count}, 0) as renewal_count, case when ${count} > 0 then ${lastExpiry} end as renewed_until`,

    /**
     * Inserts one history entry per row of `rows`. `transition` is three values: event, from_state, to_state; `renewals`
     * are `renewalColumns`. `caller`: `each` if every row has its own, in the columns actor, address and request_id.
     */
    insertHistory: (
      rows: Fragment,
      transition: Fragment,
      caller: Caller | 'sweeper' | 'each',
      { detail = sql`null`, renewals = sql`null, null` }: { detail?: Fragment; renewals?: Fragment } = {},
    ) => {
      const toOrigin = (one: Caller | 'sweeper') =>
        one === 'sweeper' ? sql`${one}, null, null` : sql`${one.actor}, ${one.address}, ${one.requestId}`
      const origin = caller === 'each' ? sql`actor, address, request_id` : toOrigin(caller)
      return sql`
        insert into allocation_history
          (pool_domain, subdomain, event, from_state, to_state, created_by, actor, address, request_id, detail,
            renewal_count, renewed_until)
        select pool_domain, subdomain, ${transition}, created_by, ${origin}, ${detail},
          ${renewals}
        from ${rows}
        returning 1`
    },

    /**
     * Gives the names in `rows` (pool_domain, subdomain, token_hash, lineage_id) to their lineage: they are not free until
     * `letGo`. It changes only a name that is live or already held by the lineage, and whose token matches. Returns the
     * names that the lineage holds, so that the same statement can record that the lineage has infrastructure.
     */
    hold: (rows: Fragment) => sql`
      update pool_allocations a set lineage_id = holder.lineage_id
      from (select * from ${rows}) holder
      where a.pool_domain = holder.pool_domain and a.subdomain = holder.subdomain and a.token_hash = holder.token_hash
        and a.state <> 'released' and case when a.lineage_id is null then ${isLive} else a.lineage_id = holder.lineage_id end
      returning a.pool_domain, a.subdomain`,

    /**
     * Ends the hold of the lineages in `rows` (pool_domain, subdomain, lineage_id). A released name becomes free, after
     * another cool-off if it was ever active. A live one stays with its client.
     */
    letGo: (rows: Fragment, coolOffMs: number) => sql`
      update pool_allocations a set lineage_id = null,
        cool_off_until = case when a.state = 'released' then greatest(a.cool_off_until, ${now}
            + case when a.committed_at is null then interval '0' else ${milliseconds(coolOffMs)} end)
          else a.cool_off_until end
      from (select * from ${rows}) holder
      where a.pool_domain = holder.pool_domain and a.subdomain = holder.subdomain
        and a.lineage_id = holder.lineage_id
      returning a.pool_domain, a.subdomain`,
  }
}

import type { Target } from '@pool/contract'
import type { Fragment, Sql } from '@pool/runtime/database/client'
import { drainRows } from '@pool/runtime/database/client'
import { timeSql, withTimeout } from '@pool/runtime/database/time'
import { targetOf, targetText, toTargetColumns } from '../dns/domain/target.ts'
import { type Caller, UNKNOWN_LINEAGE } from '../naming/naming.ts'
import type { StoredRecords } from '../records/domain/stored.ts'
import type { DesiredRecords } from './domain/name.ts'
import type { Orphan } from './domain/orphan.ts'
import type { TrustedName } from './domain/resume.ts'
import { newVersionColumns } from './repository.ts'
import { isLeaseHeld, type Lease } from './zone-lock.ts'

/** The desired records of an active name, and what they are derived from. */
export interface ActiveRecords extends DesiredRecords {
  readonly target: Target
  /** Null: its tenant has set none. */
  readonly tenant: StoredRecords | null
}

/** A token that no client has. */
const unknownToken = (sql: Sql) => sql`sha256(convert_to(gen_random_uuid()::text, 'UTF8'))`

/**
 * Makes the names of `rows` (subdomain, load_balancer_ip, target) active, which ends a reservation or a cool-off of the name. Returns the
 * names: one that is active, or a pool, is left out. The reservation's token ends with it: the zone does not show whether
 * its client committed the name, or another one after it. A lineage keeps the name, because it has infrastructure there.
 */
const adoptNames = (sql: Sql, zone: string, rows: Fragment) => sql`
  insert into pool_allocations as a
    (pool_domain, subdomain, state, reserved_at, committed_at, token_hash, created_by, sovereign_fqdn, load_balancer_ip,
      target)
  select ${zone}, subdomain, 'active', ${timeSql(sql).now}, ${timeSql(sql).now}, ${unknownToken(sql)}, 'operator', subdomain || '.' || ${zone},
    load_balancer_ip, target
  from (select * from ${rows}) item order by subdomain collate "C"
  on conflict (pool_domain, subdomain) do update set
    state = 'active', reserved_at = excluded.reserved_at, committed_at = excluded.committed_at, expires_at = null,
    cool_off_until = null, replaced_state = a.state, renewal_count = 0, token_hash = excluded.token_hash,
    former_token_hash = null, created_by = excluded.created_by, sovereign_fqdn = excluded.sovereign_fqdn,
    load_balancer_ip = excluded.load_balancer_ip, target = excluded.target,
    lineage_id = nullif(a.lineage_id, ${UNKNOWN_LINEAGE})
  where a.state in ('reserved', 'released')
  returning a.subdomain, a.replaced_state`

/**
 * The end of each reservation that `adoptNames` replaced, as rows for the history. `adopted` are its rows, `former` the
 * locked rows before it. Of a reservation that was made after the start of the statement, the client is not known.
 */
const endedReservations = (sql: Sql, adopted: Fragment, former: Fragment) => sql`
  select subdomain, case when expires_at <= ${timeSql(sql).now} then 'expired' else 'released' end as event,
    'reserved' as from_state, 'none' as to_state, coalesce(created_by, '') as created_by,
    nullif(renewal_count, 0) as renewal_count, case when renewal_count > 0 then expires_at end as renewed_until
  from (select subdomain, replaced_state from ${adopted}) adopted
    left join (select subdomain, created_by, renewal_count, expires_at from ${former}) former using (subdomain)
  where replaced_state = 'reserved'`

export type OperationsRepository = ReturnType<typeof createOperationsRepository>

/**
 * The statements of an operator's work on a zone: they make the database like the zone, orphans names of the service, and
 * the desired records those of the template. Each decides about its whole batch. Those that write
 * fail if the lock of the zone, `lease`, is lost.
 */
export const createOperationsRepository = (sql: Sql, { timeoutMs }: { timeoutMs: number }) => ({
  /**
   * Makes the names active, with the records that the zone has as the desired ones. A name that is active, or has desired
   * records or had some, is left out: the insertions decide, so a concurrent commit wins or waits. The token of an adopted
   * name is not known to any client, so only an operator can release it. Returns the names.
   */
  async adopt(zone: string, orphans: readonly Orphan[], caller: Caller, lease: Lease): Promise<string[]> {
    const items = orphans.map(({ subdomain, target, records }) => ({
      subdomain,
      ...toTargetColumns(target),
      desired: records,
    }))
    const rows = await withTimeout(
      sql<{ subdomain: string; event: string }[]>`
        with input as (
            select * from jsonb_to_recordset(${sql.json(items as never)}) as item
              (subdomain text, load_balancer_ip inet, target jsonb, desired jsonb)
            where not exists (select from dns_names d where d.zone = ${zone} and d.subdomain = item.subdomain)
              and ${isLeaseHeld(sql, lease)}
          ),
          former as (
            select a.* from input join pool_allocations a on a.pool_domain = ${zone} and a.subdomain = input.subdomain
            order by a.subdomain for update of a
          ),
          free as (
            select input.* from input left join former using (subdomain)
            where former.state is null or former.state in ('reserved', 'released')
          ),
          adopted as (${adoptNames(sql, zone, sql`free`)}),
          desired as (
            insert into dns_names as d (zone, subdomain, version, desired, changed_at, next_attempt_at)
            select ${zone}, subdomain, nextval('dns_version'), input.desired, statement_timestamp(), statement_timestamp()
            from adopted join input using (subdomain) order by subdomain collate "C"
            -- A row that a removal of the same orphan has just inserted.
            on conflict (zone, subdomain) do update set
              ${sql.unsafe(newVersionColumns('excluded.desired', 'excluded.changed_at'))}
          ),
          transitions as (
            select 1 as step, ended.* from (${endedReservations(sql, sql`adopted`, sql`former`)}) ended
            union all
            select 2, subdomain, 'adopted', 'none', 'active', 'operator', null, null from adopted
          )
        insert into allocation_history
          (pool_domain, subdomain, event, from_state, to_state, created_by, renewal_count, renewed_until, actor, address,
            request_id)
        select ${zone}, subdomain, event, from_state, to_state, created_by, renewal_count, renewed_until, ${caller.actor},
          ${caller.address}, ${caller.requestId}
        from transitions order by subdomain collate "C", step
        returning subdomain, event`,
      timeoutMs,
    )
    return rows.flatMap(({ subdomain, event }) => (event === 'adopted' ? [subdomain] : []))
  },

  /** Keeps the names out of use until an operator adopts or removes them. A name with a row, of whatever state, keeps it. */
  async keepUnknown(zone: string, subdomains: readonly string[], lease: Lease): Promise<void> {
    const { now } = timeSql(sql)
    await withTimeout(
      sql`
        insert into pool_allocations
          (pool_domain, subdomain, state, reserved_at, committed_at, token_hash, created_by, lineage_id)
        select ${zone}, subdomain, 'released', ${now}, ${now}, ${unknownToken(sql)}, '', ${UNKNOWN_LINEAGE}
        from jsonb_array_elements_text(${sql.json(subdomains)}) as input (subdomain) where ${isLeaseHeld(sql, lease)}
        order by subdomain collate "C"
        on conflict do nothing`,
      timeoutMs,
    )
  },

  /** Frees the names that `keepUnknown` has kept, except those of `kept`. */
  async freeUnknown(zone: string, kept: readonly string[], lease: Lease): Promise<void> {
    await withTimeout(
      sql`
        delete from pool_allocations where pool_domain = ${zone} and state <> 'active' and lineage_id is not null
          and lineage_id = ${UNKNOWN_LINEAGE}
          and subdomain not in (select jsonb_array_elements_text(${sql.json(kept)})) and ${isLeaseHeld(sql, lease)}`,
      timeoutMs,
    )
  },

  /** Whether nothing of this database was ever written to the zone, or it keeps names that an operator has not decided about. */
  async mayHaveUnknown(zone: string): Promise<boolean> {
    const rows = await withTimeout(
      sql`
        select where not exists (select from dns_zone_writes where zone = ${zone} and serial > 0)
          or exists (
            select from pool_allocations where pool_domain = ${zone} and state <> 'active'
              and lineage_id is not null and lineage_id = ${UNKNOWN_LINEAGE})`,
      timeoutMs,
    )
    return rows.length > 0
  },

  /**
   * Makes the names due for a deletion of every record set at or below them, as after a release. A name that has desired
   * records, or had some, is left out. Returns the names.
   */
  async remove(zone: string, orphans: readonly Orphan[], caller: Caller, lease: Lease): Promise<string[]> {
    const subdomains = orphans.map(({ subdomain }) => subdomain)
    const rows = await withTimeout(
      sql<{ subdomain: string }[]>`
        with removed as (
            insert into dns_names (zone, subdomain, version, desired, changed_at, next_attempt_at)
            select ${zone}, subdomain, nextval('dns_version'), '[]', statement_timestamp(), statement_timestamp()
            from jsonb_array_elements_text(${sql.json(subdomains)}) as input (subdomain)
            where ${isLeaseHeld(sql, lease)}
            order by subdomain collate "C"
            on conflict do nothing
            returning subdomain
          ),
          freed as (
            delete from pool_allocations a using removed
            where pool_domain = ${zone} and a.subdomain = removed.subdomain and lineage_id = ${UNKNOWN_LINEAGE}
          )
        insert into allocation_history
          (pool_domain, subdomain, event, from_state, to_state, created_by, actor, address, request_id)
        select ${zone}, subdomain, 'orphan-removed', 'none', 'none', '', ${caller.actor}, ${caller.address},
          ${caller.requestId}
        from removed order by subdomain collate "C"
        returning subdomain`,
      timeoutMs,
    )
    return rows.map(row => row.subdomain)
  },

  /**
   * Changes names to what the zone has, unless they have changed since these versions. Their tokens are no longer valid. It
   * locks allocations before desired records, as every other statement. Returns the names that it changed.
   */
  async trustZone(zone: string, names: readonly TrustedName[], caller: Caller, lease: Lease): Promise<string[]> {
    const items = names.map(({ target, subdomain, version, action, desired }) => ({
      subdomain,
      version,
      action,
      ...toTargetColumns(target),
      desired,
    }))
    const newToken = unknownToken(sql)
    const { now } = timeSql(sql)
    const rows = await withTimeout(
      sql<{ subdomain: string }[]>`
        with item as (
            select * from jsonb_to_recordset(${sql.json(items as never)}) as item
              (subdomain text, version bigint, action text, load_balancer_ip inet, target jsonb, desired jsonb)
            where ${isLeaseHeld(sql, lease)}
          ),
          held as (
            select a.* from item join pool_allocations a on a.pool_domain = ${zone} and a.subdomain = item.subdomain
            order by a.subdomain for update of a
          ),
          changed as (
            update dns_names d set
              -- What else the zone has below the name is its holder's.
              purge_version = 0,
              ${sql.unsafe(newVersionColumns('item.desired', 'statement_timestamp()'))}
            from item left join held using (subdomain)
            where d.zone = ${zone} and d.subdomain = item.subdomain and d.version = item.version
              and case when item.action = 'adopt'
                then held.state is null or held.state in ('reserved', 'released')
                else held.state = 'active' end
            returning d.subdomain, item.action, item.load_balancer_ip, item.target, held.created_by, held.lineage_id,
              ${sql.unsafe(targetText(targetOf('held')))} as former_text
          ),
          readdressed as (
            update pool_allocations a set load_balancer_ip = changed.load_balancer_ip, target = changed.target, token_hash = ${newToken}, former_token_hash = null
            from changed where changed.action = 'readdress' and a.pool_domain = ${zone} and a.subdomain = changed.subdomain
          ),
          kept as (
            update pool_allocations a set state = 'released', cool_off_until = ${now}, token_hash = ${newToken},
              former_token_hash = null
            from changed where changed.action = 'release' and changed.lineage_id is not null
              and a.pool_domain = ${zone} and a.subdomain = changed.subdomain
          ),
          released as (
            delete from pool_allocations a using changed
            where changed.action = 'release' and changed.lineage_id is null
              and a.pool_domain = ${zone} and a.subdomain = changed.subdomain
          ),
          adopted as (${adoptNames(sql, zone, sql`changed where action = 'adopt'`)}),
          transition (action, event, from_state, to_state) as (
            values ('readdress', 'updated', 'active', 'active'), ('release', 'released', 'active', 'none'),
              ('adopt', 'adopted', 'none', 'active')
          ),
          transitions as (
            select 1 as step, ended.*, null as detail from (${endedReservations(sql, sql`adopted`, sql`held`)}) ended
            union all
            select 2, subdomain, event, from_state, to_state,
              case when action = 'adopt' then 'operator' else created_by end, null, null,
              case action when 'readdress' then former_text || ' replaced by ' || ${sql.unsafe(targetText(targetOf('changed')))} || ', as in the zone'
                when 'release' then 'the zone has no records' end
            from changed join transition using (action)
          )
        insert into allocation_history
          (pool_domain, subdomain, event, from_state, to_state, created_by, renewal_count, renewed_until, detail, actor,
            address, request_id)
        select ${zone}, subdomain, event, from_state, to_state, created_by, renewal_count, renewed_until, detail,
          ${caller.actor}, ${caller.address}, ${caller.requestId}
        from transitions order by subdomain collate "C", step
        returning subdomain`,
      timeoutMs,
    )
    return rows.map(({ subdomain }) => subdomain)
  },

  /** Raises the number to that of a zone which another state of the database wrote. */
  async catchUpSerial(zone: string, serial: number, lease: Lease): Promise<void> {
    await withTimeout(
      sql`update dns_zone_writes set serial = greatest(serial, ${serial}) where zone = ${zone} and ${isLeaseHeld(sql, lease)}`,
      timeoutMs,
    )
  },

  /** Ends a stop of the writes. */
  async resumeWrites(zone: string, lease: Lease): Promise<void> {
    await withTimeout(
      sql`update dns_zone_writes set stopped_cause = null, stopped_at = null where zone = ${zone} and ${isLeaseHeld(sql, lease)}`,
      timeoutMs,
    )
  },

  /** The active names of the zone after `after`, in their order. */
  async listActive(zone: string, after: string, limit: number): Promise<ActiveRecords[]> {
    const rows = await withTimeout(
      sql<ActiveRecords[]>`
        select a.subdomain, ${sql.unsafe(targetOf('a'))} as target, d.version, d.desired, case when a.records_revision > 0 then (
            select records from tenant_records t where t.pool_domain = a.pool_domain and t.subdomain = a.subdomain
          ) end as tenant
        from (
          select * from pool_allocations
          where pool_domain = ${zone} and state = 'active' and subdomain > ${after} order by subdomain limit ${limit}
        ) a cross join lateral (
          select version, desired from dns_names where zone = a.pool_domain and subdomain = a.subdomain limit 1
        ) d
        order by a.subdomain`,
      timeoutMs,
    )
    return drainRows(rows)
  },

  /** What the tenant of a name has set. */
  async findTenantRecords(zone: string, subdomain: string): Promise<StoredRecords | null> {
    const [row] = await withTimeout(
      sql<{ records: StoredRecords | null }[]>`
        select records from tenant_records where pool_domain = ${zone} and subdomain = ${subdomain}`,
      timeoutMs,
    )
    return row?.records ?? null
  },

  /** Gives active names other desired records, unless they have changed since these versions. */
  async republish(
    zone: string,
    names: readonly DesiredRecords[],
    { actor, address, requestId }: Caller,
    lease: Lease,
  ): Promise<void> {
    const items = names.map(({ subdomain, version, desired }) => ({ subdomain, version, desired }))
    await withTimeout(
      sql`
        with republished as (
          update dns_names d set
            ${sql.unsafe(newVersionColumns('item.desired', 'statement_timestamp()'))}
          from jsonb_to_recordset(${sql.json(items as never)}) as item (subdomain text, version bigint, desired jsonb)
          where d.zone = ${zone} and d.subdomain = item.subdomain and d.version = item.version
            and ${isLeaseHeld(sql, lease)}
          returning d.subdomain
        )
        insert into allocation_history
          (pool_domain, subdomain, event, from_state, to_state, created_by, actor, address, request_id)
        select a.pool_domain, a.subdomain, 'republished', 'active', 'active', a.created_by, ${actor}, ${address},
          ${requestId}
        from republished join pool_allocations a on a.pool_domain = ${zone} and a.subdomain = republished.subdomain
        order by a.subdomain`,
      timeoutMs,
    )
  },
})

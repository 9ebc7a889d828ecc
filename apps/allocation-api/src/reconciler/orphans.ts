import type { Fragment, Sql } from '@pool/database/client'
import { withTimeout } from '@pool/database/with-timeout'
import type { Unavailable } from '../dns/domain/result.ts'
import type { Caller } from '../naming/caller.ts'
import { canBeGranted, type Pools } from '../naming/naming.ts'
import type { Orphan } from './domain/orphan.ts'
import { newVersionColumns } from './new-version.ts'
import type { ReconcilerRepository } from './repository.ts'
import { type Busy, holdDuring, type WithZoneLock } from './zone-lock.ts'
import { type ScanContext, scanZone } from './zone-scan.ts'

export type OrphanRepository = ReturnType<typeof createOrphanRepository>

export interface OrphanContext extends ScanContext {
  readonly orphanRepository: OrphanRepository
  readonly pools: () => Pools
}

/** The orphans of one page that a call changes, or would change. */
export type OrphanAction = 'adopt' | 'remove'

export interface OrphanChange {
  readonly kind: 'orphans'
  /** The first `MAX_LISTED`, by name. */
  readonly orphans: readonly Orphan[]
  readonly orphanCount: number
  /** Those that were changed. 0 in a dry run. The others got records, or a holder, in the meantime. */
  readonly changedCount: number
}

export interface ChangeOrphansOptions {
  readonly action: OrphanAction
  /** Null: a dry run, which changes nothing. */
  readonly caller: Caller | null
  /** Only these names; null: all. */
  readonly subdomains: readonly string[] | null
}

/** Orphans that a result lists; the rest is only counted. */
const MAX_LISTED = 1_000

/** Names per statement. */
const BATCH_SIZE = 500

/** A token that no client has. */
export const unknownToken = (sql: Sql) => sql`sha256(convert_to(gen_random_uuid()::text, 'UTF8'))`

/** The time of the statement, with the precision of the API. */
export const statementTime = (sql: Sql) => sql`date_trunc('milliseconds', statement_timestamp())`

/**
 * Makes the names of `rows` (subdomain, address) active, which ends a reservation or a cool-off of the name. Returns the
 * names: one that is active, or a pool, is left out. The reservation's token ends with it: the zone does not show whether
 * its client committed the name, or another one after it. A lineage keeps the name, because it has infrastructure there.
 */
export const adoptNames = (sql: Sql, zone: string, rows: Fragment) => sql`
  insert into pool_allocations as a
    (pool_domain, subdomain, state, reserved_at, committed_at, token_hash, created_by, sovereign_fqdn, load_balancer_ip)
  select ${zone}, subdomain, 'active', ${statementTime(sql)}, ${statementTime(sql)}, ${unknownToken(sql)}, 'operator', subdomain || '.' || ${zone},
    address::inet
  from (select * from ${rows}) item order by subdomain collate "C"
  on conflict (pool_domain, subdomain) do update set
    state = 'active', reserved_at = excluded.reserved_at, committed_at = excluded.committed_at, expires_at = null,
    cool_off_until = null, replaced_state = a.state, renewal_count = 0, token_hash = excluded.token_hash,
    former_token_hash = null, created_by = excluded.created_by, sovereign_fqdn = excluded.sovereign_fqdn,
    load_balancer_ip = excluded.load_balancer_ip
  where a.state in ('reserved', 'released')
  returning a.subdomain, a.replaced_state`

/**
 * The end of each reservation that `adoptNames` replaced, as rows for the history. `adopted` are its rows, `former` the
 * locked rows before it. Of a reservation that was made after the start of the statement, the client is not known.
 */
export const endedReservations = (sql: Sql, adopted: Fragment, former: Fragment) => sql`
  select subdomain, case when expires_at <= ${statementTime(sql)} then 'expired' else 'released' end as event,
    'reserved' as from_state, 'none' as to_state, coalesce(created_by, '') as created_by,
    nullif(renewal_count, 0) as renewal_count, case when renewal_count > 0 then expires_at end as renewed_until
  from (select subdomain, replaced_state from ${adopted}) adopted
    left join (select subdomain, created_by, renewal_count, expires_at from ${former}) former using (subdomain)
  where replaced_state = 'reserved'`

/** The statements that make orphans names of the service. Each decides about its whole batch. */
export const createOrphanRepository = (sql: Sql, { timeoutMs }: { timeoutMs: number }) => ({
  /**
   * Makes the names active, with the records that the zone has as the desired ones. A name that is active, or has desired
   * records or had some, is left out: the insertions decide, so a concurrent commit wins or waits. The token of an adopted
   * name is not known to any client, so only an operator can release it. Returns the names.
   */
  async adopt(zone: string, orphans: readonly Orphan[], caller: Caller): Promise<string[]> {
    const items = orphans.map(({ subdomain, address, records }) => ({ subdomain, address, desired: records }))
    const rows = await withTimeout(
      sql<{ subdomain: string; event: string }[]>`
        with input as (
            select * from jsonb_to_recordset(${sql.json(items as never)}) as item (subdomain text, address text, desired jsonb)
            where not exists (select from dns_names d where d.zone = ${zone} and d.subdomain = item.subdomain)
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
              ${newVersionColumns(sql, sql`excluded.desired`, sql`excluded.changed_at`)}
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

  /**
   * Makes the names due for a deletion of every record set at or below them, as after a release. A name that has desired
   * records, or had some, is left out. Returns the names.
   */
  async remove(zone: string, orphans: readonly Orphan[], caller: Caller): Promise<string[]> {
    const subdomains = orphans.map(({ subdomain }) => subdomain)
    const rows = await withTimeout(
      sql<{ subdomain: string }[]>`
        with removed as (
            insert into dns_names (zone, subdomain, version, desired, changed_at, next_attempt_at)
            select ${zone}, subdomain, nextval('dns_version'), '[]', statement_timestamp(), statement_timestamp()
            from jsonb_array_elements_text(${sql.json(subdomains)}) as input (subdomain)
            order by subdomain collate "C"
            on conflict do nothing
            returning subdomain
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
})

/** Those of `orphans`, names without a row at the read of the zone, that a client could have and that still have none. */
export const findOrphans = async (
  {
    repository,
    pools,
  }: {
    readonly repository: Pick<ReconcilerRepository, 'findNames'>
    readonly pools: () => Pools
  },
  zone: string,
  orphans: readonly Orphan[],
): Promise<Orphan[]> => {
  const grantable = orphans.filter(({ subdomain }) => canBeGranted(zone, subdomain, pools()))
  if (grantable.length === 0) return []
  const rows = await repository.findNames(
    zone,
    grantable.map(({ subdomain }) => subdomain),
  )
  const known = new Set(rows.map(({ subdomain }) => subdomain))
  return grantable.filter(({ subdomain }) => !known.has(subdomain))
}

/**
 * Adopts the orphans of a zone as allocations, or has their records deleted; without a `caller`, only lists them. The
 * records themselves change in the next sync. Repeating it changes nothing.
 */
export const changeOrphans = async (
  context: OrphanContext & { readonly withZoneLock: WithZoneLock },
  zone: string,
  { action, caller, subdomains }: ChangeOrphansOptions,
): Promise<OrphanChange | Unavailable | Busy> => {
  const { orphanRepository, withZoneLock } = context
  const wanted = subdomains && new Set(subdomains)
  const listed: Orphan[] = []
  let orphanCount = 0
  let changedCount = 0
  const changePage = async (orphans: readonly Orphan[]): Promise<void> => {
    orphanCount += orphans.length
    listed.push(...orphans.slice(0, MAX_LISTED - listed.length))
    if (!caller) return
    for (let i = 0; i < orphans.length; i += BATCH_SIZE) {
      changedCount += (await orphanRepository[action](zone, orphans.slice(i, i + BATCH_SIZE), caller)).length
    }
  }
  const result = await withZoneLock(zone, lock =>
    holdDuring(lock, async () => {
      for await (const page of scanZone(context, zone)) {
        if (page.kind === 'unavailable') return page
        const orphans = await findOrphans(context, zone, page.orphans)
        await changePage(wanted ? orphans.filter(({ subdomain }) => wanted.has(subdomain)) : orphans)
      }
      return { kind: 'orphans', orphans: listed, orphanCount, changedCount } as const
    }),
  )
  return result ?? { kind: 'busy' }
}

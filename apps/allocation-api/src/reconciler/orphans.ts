import type { Sql } from '@pool/database/client'
import { withTimeout } from '@pool/database/with-timeout'
import type { Caller } from '../allocation/domain/types.ts'
import type { Unavailable } from '../dns/domain/result.ts'
import { canBeGranted, type Pools } from '../naming/naming.ts'
import { newVersionColumns } from './domain/new-version.ts'
import type { Orphan } from './domain/orphan.ts'
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
  /** Those that were changed. 0 in a dry run. The others got a row, or a holder, in the meantime. */
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

/** Who created an adopted allocation: its client is not known. */
const CREATED_BY = 'operator'

/** The statements that make orphans names of the service. Each decides about its whole batch. */
export const createOrphanRepository = (sql: Sql, { timeoutMs }: { timeoutMs: number }) => ({
  /**
   * Makes the names active, with the records that the zone has as the desired ones. A name that has any row is left out:
   * the insertions decide, so a concurrent reservation wins or waits. The token of an adopted name is not known to any
   * client, so only an operator can release it. Returns the names.
   */
  async adopt(zone: string, orphans: readonly Orphan[], caller: Caller): Promise<string[]> {
    const items = orphans.map(({ subdomain, address, records }) => ({ subdomain, address, desired: records }))
    const rows = await withTimeout(
      sql<{ subdomain: string }[]>`
        with input as (
            select * from jsonb_to_recordset(${sql.json(items as never)}) as item (subdomain text, address text, desired jsonb)
          ),
          adopted as (
            insert into pool_allocations
              (pool_domain, subdomain, state, reserved_at, committed_at, token_hash, created_by, sovereign_fqdn,
                load_balancer_ip)
            select ${zone}, subdomain, 'active', date_trunc('milliseconds', statement_timestamp()),
              date_trunc('milliseconds', statement_timestamp()), sha256(convert_to(gen_random_uuid()::text, 'UTF8')),
              ${CREATED_BY}, subdomain || '.' || ${zone}, address::inet
            from input
            where not exists (select from dns_names d where d.zone = ${zone} and d.subdomain = input.subdomain)
            order by subdomain collate "C"
            on conflict do nothing
            returning pool_domain, subdomain, created_by
          ),
          desired as (
            insert into dns_names as d (zone, subdomain, version, desired, changed_at, next_attempt_at)
            select ${zone}, subdomain, nextval('dns_version'), input.desired, statement_timestamp(), statement_timestamp()
            from adopted join input using (subdomain) order by subdomain collate "C"
            -- A row that a removal of the same orphan has just inserted.
            on conflict (zone, subdomain) do update set
              ${newVersionColumns(sql, sql`excluded.desired`, sql`excluded.changed_at`)}
          )
        insert into allocation_history
          (pool_domain, subdomain, event, from_state, to_state, created_by, actor, address, request_id)
        select pool_domain, subdomain, 'adopted', 'none', 'active', created_by, ${caller.actor}, ${caller.address},
          ${caller.requestId}
        from adopted order by subdomain collate "C"
        returning subdomain`,
      timeoutMs,
    )
    return rows.map(row => row.subdomain)
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

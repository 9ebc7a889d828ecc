import type { Sql } from '@pool/database/client'
import { withTimeout } from '@pool/database/with-timeout'
import type { DesiredName } from './domain/plan.ts'
import type { FailureCause, SyncStatus } from './domain/status.ts'
import { type DnsEvent, desiredColumns, historyOfDns, keysOf, rowsOf, versionsOf } from './sql.ts'

/** A name whose desired records are not applied yet and whose turn it is. */
export interface DueName extends DesiredName {
  readonly version: number
  /** The records were applied before, and the provider was found not to have them any more. */
  readonly isRepair: boolean
  /** Of the last failures, all of one cause: how many. */
  readonly attempts: number
  /** Null: the last attempt did not fail. */
  readonly failure: FailureCause | null
}

export interface AppliedName extends Pick<DueName, 'subdomain' | 'version' | 'desired'> {
  readonly event: DnsEvent
  readonly detail: string | null
}

export interface FailedName extends Pick<DueName, 'subdomain' | 'version'> {
  readonly failure: FailureCause
  /** For an operator: no key or token in it. */
  readonly reason: string
  readonly pauseMs: number
}

export interface ZoneLag {
  readonly zone: string
  /** Age of the oldest change that is not applied; 0: there is none. */
  readonly oldestPendingSeconds: number
  /** Unix time. */
  readonly convergedAt: number | null
  readonly comparedAt: number | null
  /** Names by the cause of their last failure. */
  readonly failing: Readonly<Partial<Record<FailureCause, number>>>
}

export type ZoneStore = ReturnType<typeof createZoneStore>

/** Desired DNS and its progress. */
export const createZoneStore = (sql: Sql, { timeoutMs }: { timeoutMs: number }) => ({
  async due(zone: string, limit: number): Promise<DueName[]> {
    return withTimeout(
      sql<DueName[]>`
        select ${desiredColumns(sql)}, attempts, failure, is_drift_repair as "isRepair"
        from dns_names
        where zone = ${zone} and applied_version < version and next_attempt_at <= statement_timestamp()
        order by changed_at limit ${limit}`,
      timeoutMs,
    )
  },

  async zonesWithDue(): Promise<string[]> {
    const rows = await withTimeout(
      sql<{ zone: string }[]>`
        select distinct zone from dns_names
        where applied_version < version and next_attempt_at <= statement_timestamp()`,
      timeoutMs,
    )
    return rows.map(row => row.zone)
  },

  /**
   * Remembers that these versions may be at the provider from now on, whatever becomes of the order, and of the names
   * meanwhile. It is committed before the provider is asked: a crash in between must not leave records that we would
   * take for somebody else's. They are not `owned` by it: an order that is refused leaves what stands there.
   */
  async intend(zone: string, names: readonly DueName[]): Promise<void> {
    await withTimeout(
      sql`
        update dns_names d set attempted_version = greatest(d.attempted_version, item.version)
        from ${versionsOf(sql, names)}
        where d.zone = ${zone} and d.subdomain = item.subdomain`,
      timeoutMs,
    )
  },

  /**
   * The provider has these versions. A statement that comes late, when a newer version has been intended or applied,
   * changes nothing.
   */
  async applied(zone: string, names: readonly AppliedName[]): Promise<void> {
    await withTimeout(
      sql`
        with marked as (
          update dns_names d set
            applied_version = item.version, applied_at = statement_timestamp(), attempted_version = item.version,
            attempts = 0, failure = null, last_error = null, is_drift_repair = false, owned = ${keysOf(sql)}
          from ${rowsOf(sql, names)}
          where d.zone = ${zone} and d.subdomain = item.subdomain
            and d.applied_version < item.version and d.attempted_version <= item.version
          returning d.zone, d.subdomain, item.desired, item.event, item.detail
        )
        ${historyOfDns(sql)}`,
      timeoutMs,
    )
  },

  /**
   * These versions could not be applied. One that has been replaced meanwhile starts afresh and is left alone. The
   * history has each failure of another cause than the one before, and not every attempt.
   */
  async failed(zone: string, names: readonly FailedName[]): Promise<void> {
    await withTimeout(
      sql`
        with failed as (
          update dns_names d set
            attempts = case when d.failure = item.failure then d.attempts + 1 else 1 end,
            failure = item.failure, last_error = item.reason,
            next_attempt_at = statement_timestamp() + item."pauseMs" * interval '1 millisecond'
          from ${rowsOf(sql, names)} join dns_names before
            on before.zone = ${zone} and before.subdomain = item.subdomain
          where d.zone = ${zone} and d.subdomain = item.subdomain and d.version = item.version
            and d.applied_version < d.version
          returning d.zone, d.subdomain, d.desired, 'failing' as event, item.reason as detail,
            before.failure is distinct from item.failure as is_news
        ), marked as (select * from failed where is_news)
        ${historyOfDns(sql)}`,
      timeoutMs,
    )
  },

  async progress(zone: string, subdomain: string): Promise<SyncStatus | null> {
    const [row] = await withTimeout(
      sql<SyncStatus[]>`
        select version, applied_version as "appliedVersion", last_error as "lastError" from dns_names
        where zone = ${zone} and subdomain = ${subdomain}`,
      timeoutMs,
    )
    return row ?? null
  },

  /** A pass over the zone has ended. A zone that is new is to be compared after `comparisonInMs` for the first time. */
  async passed(zone: string, { isConverged, comparisonInMs }: { isConverged: boolean; comparisonInMs: number }) {
    await withTimeout(
      sql`
        insert into dns_zones as z (zone, synced_at, next_drift_check_at)
        values (${zone}, case when ${isConverged} then statement_timestamp() end,
          statement_timestamp() + ${comparisonInMs}::float8 * interval '1 millisecond')
        on conflict (zone) do update set synced_at = coalesce(excluded.synced_at, z.synced_at)`,
      timeoutMs,
    )
  },

  async lag(): Promise<ZoneLag[]> {
    return withTimeout(
      sql<ZoneLag[]>`
        with pending as (
          select zone, failure, count(*) as names, min(changed_at) as since from dns_names
          where applied_version < version group by zone, failure
        )
        select zone, extract(epoch from min(z.synced_at))::float8 as "convergedAt",
          extract(epoch from min(z.drift_checked_at))::float8 as "comparedAt",
          coalesce(extract(epoch from statement_timestamp() - min(p.since))::float8, 0) as "oldestPendingSeconds",
          coalesce(jsonb_object_agg(p.failure, p.names) filter (where p.failure is not null), '{}') as failing
        from dns_zones z full join pending p using (zone)
        group by zone`,
      timeoutMs,
    )
  },
})

import { type Sql, within } from '../database/connect.ts'
import type { OwnedKey } from './plan.ts'
import type { RecordSet } from './record-set.ts'
import type { Progress } from './state.ts'

/** A name whose desired records are not applied yet and whose turn it is. */
export interface DueName {
  readonly subdomain: string
  readonly version: number
  readonly desired: readonly RecordSet[]
  readonly owned: readonly OwnedKey[]
  readonly isUnconfirmed: boolean
  /** Failures in a row. */
  readonly attempts: number
}

export interface FailedName {
  readonly subdomain: string
  readonly version: number
  /** For an operator: no key or token in it. */
  readonly reason: string
  readonly pauseMs: number
}

export type ZoneStore = ReturnType<typeof createZoneStore>

/** Desired DNS and its progress. */
export const createZoneStore = (sql: Sql, { timeoutMs }: { timeoutMs: number }) => {
  /** `items` as rows; one JSON parameter, whatever their number. */
  const rowsOf = (items: readonly object[]) => sql`
    jsonb_to_recordset(${sql.json(items as never)})
      as item (subdomain text, version bigint, desired jsonb, reason text, "pauseMs" float8)`

  /** Name and type of each desired record set of `item`, one object a set. */
  const key = sql`jsonb_build_object('name', wanted->'name', 'type', wanted->'type')`
  const keysWhere = (condition: typeof key) => sql`(
    select coalesce(jsonb_agg(${key}), '[]') from jsonb_array_elements(item.desired) wanted where ${condition})`

  return {
    async due(zone: string, limit: number): Promise<DueName[]> {
      return within(
        timeoutMs,
        sql<DueName[]>`
          select subdomain, version, desired, owned, attempts,
            intended_version > applied_version as "isUnconfirmed"
          from dns_names
          where zone = ${zone} and applied_version < version and next_attempt_at <= statement_timestamp()
          order by desired_since limit ${limit}`,
      )
    },

    async zonesWithDue(): Promise<string[]> {
      const rows = await within(
        timeoutMs,
        sql<{ zone: string }[]>`
          select distinct zone from dns_names
          where applied_version < version and next_attempt_at <= statement_timestamp()`,
      )
      return rows.map(row => row.zone)
    },

    /**
     * Remembers that the desired records may be at the provider from now on. It is committed before the provider is
     * asked: a crash in between must not leave records that we would take for somebody else's.
     */
    async intend(zone: string, names: readonly DueName[]): Promise<void> {
      await within(
        timeoutMs,
        sql`
          update dns_names d set intended_version = item.version,
            owned = d.owned || ${keysWhere(sql`not d.owned @> jsonb_build_array(${key})`)}
          from ${rowsOf(names)}
          where d.zone = ${zone} and d.subdomain = item.subdomain and d.version = item.version`,
      )
    },

    /**
     * The provider has these versions. A name that was withdrawn, and is still meant to be, is forgotten. A statement
     * that comes late, when a newer version has been intended or applied, changes nothing.
     */
    async applied(zone: string, names: readonly DueName[]): Promise<void> {
      await within(
        timeoutMs,
        sql`
          with item as (select * from ${rowsOf(names)}), forgotten as (
            delete from dns_names d using item
            where d.zone = ${zone} and d.subdomain = item.subdomain
              and d.version = item.version and item.desired = '[]' and d.intended_version <= item.version
          )
          update dns_names d set
            applied_version = item.version, intended_version = item.version, attempts = 0, last_error = null,
            owned = ${keysWhere(sql`true`)}
          from item
          where d.zone = ${zone} and d.subdomain = item.subdomain
            and d.applied_version < item.version and d.intended_version <= item.version
            and not (d.version = item.version and item.desired = '[]')`,
      )
    },

    /** These versions could not be applied. One that has been replaced meanwhile starts afresh and is left alone. */
    async failed(zone: string, names: readonly FailedName[]): Promise<void> {
      await within(
        timeoutMs,
        sql`
          update dns_names d set
            attempts = d.attempts + 1, last_error = item.reason,
            next_attempt_at = statement_timestamp() + item."pauseMs" * interval '1 millisecond'
          from ${rowsOf(names)}
          where d.zone = ${zone} and d.subdomain = item.subdomain and d.version = item.version
            and d.applied_version < d.version`,
      )
    },

    async progress(zone: string, subdomain: string): Promise<Progress | null> {
      const [row] = await within(
        timeoutMs,
        sql<Progress[]>`
          select version, applied_version as "appliedVersion", last_error as "lastError" from dns_names
          where zone = ${zone} and subdomain = ${subdomain}`,
      )
      return row ?? null
    },

    /** Of each zone: the age in seconds of the oldest change not applied (0: none), and the last success (Unix time). */
    async lag(): Promise<
      { zone: string; oldestPendingSeconds: number; convergedAt: number | null; failing: number }[]
    > {
      return within(
        timeoutMs,
        sql<{ zone: string; oldestPendingSeconds: number; convergedAt: number | null; failing: number }[]>`
          select z.zone, extract(epoch from z.converged_at)::float8 as "convergedAt",
            coalesce(extract(epoch from statement_timestamp() - min(d.desired_since))::float8, 0)
              as "oldestPendingSeconds",
            count(d.last_error) as failing
          from dns_zones z left join dns_names d on d.zone = z.zone and d.applied_version < d.version
          group by z.zone, z.converged_at`,
      )
    },
  }
}

import type { Sql } from '@pool/database/client'
import { drainRows } from '@pool/database/drain-rows'
import { withTimeout } from '@pool/database/with-timeout'
import type { DesiredName } from './domain/plan.ts'
import { desiredColumns, versionsOf } from './sql.ts'

export interface ComparedName extends DesiredName {
  readonly version: number
  /** The provider was brought to this version; if not, there is something to do whatever the comparison shows. */
  readonly isApplied: boolean
  /** Milliseconds since; null: never. */
  readonly appliedMsAgo: number | null
}

export type NameVersion = Pick<ComparedName, 'subdomain' | 'version'>

export type ComparisonStore = ReturnType<typeof createComparisonStore>

/** When zones are compared with what is desired, and what comes of it. */
export const createComparisonStore = (sql: Sql, { timeoutMs }: { timeoutMs: number }) => ({
  /**
   * The zones whose turn it is, each told to one caller alone. Whoever takes one and does not come back with `compared`
   * leaves it to others after `patienceMs`.
   */
  async takeZones(patienceMs: number): Promise<string[]> {
    const rows = await withTimeout(
      sql<{ zone: string }[]>`
        update dns_zones z set
          next_drift_check_at = statement_timestamp() + ${patienceMs}::float8 * interval '1 millisecond'
        from (
          select zone from dns_zones where next_drift_check_at <= statement_timestamp() for update skip locked
        ) due
        where z.zone = due.zone returning z.zone`,
      timeoutMs,
    )
    return rows.map(row => row.zone)
  },

  async compared(zone: string, nextInMs: number): Promise<void> {
    await withTimeout(
      sql`
        update dns_zones set drift_checked_at = statement_timestamp(),
          next_drift_check_at = statement_timestamp() + ${nextInMs}::float8 * interval '1 millisecond'
        where zone = ${zone}`,
      timeoutMs,
    )
  },

  /** The names of the zone after `after`, in their order. */
  async names(zone: string, after: string, limit: number): Promise<ComparedName[]> {
    const rows = await withTimeout(
      sql<ComparedName[]>`
        select ${desiredColumns(sql)}, applied_version = version as "isApplied",
          extract(epoch from statement_timestamp() - applied_at)::float8 * 1000 as "appliedMsAgo"
        from dns_names where zone = ${zone} and subdomain > ${after}
        order by subdomain limit ${limit}`,
      timeoutMs,
    )
    return drainRows(rows)
  },

  /** Of names that were applied: states the same anew, for the provider no longer has it. */
  async reopen(zone: string, names: readonly NameVersion[]): Promise<void> {
    await withTimeout(
      sql`
        update dns_names d set version = nextval('dns_version'), is_drift_repair = true,
          changed_at = statement_timestamp(), next_attempt_at = statement_timestamp()
        from ${versionsOf(sql, names)}
        where d.zone = ${zone} and d.subdomain = item.subdomain and d.version = item.version`,
      timeoutMs,
    )
  },

  /** Of names that were applied: nothing is left of what was desired before. One without records is forgotten. */
  async forget(zone: string, names: readonly NameVersion[]): Promise<void> {
    await withTimeout(
      sql`
        with item as (select * from ${versionsOf(sql, names)}), forgotten as (
          delete from dns_names d using item
          where d.zone = ${zone} and d.subdomain = item.subdomain and d.version = item.version and d.desired = '[]'
        )
        update dns_names d set previous_records = '[]' from item
        where d.zone = ${zone} and d.subdomain = item.subdomain and d.version = item.version and d.desired <> '[]'`,
      timeoutMs,
    )
  },

  /**
   * Lets every change that waits after a failure be tried at once: a person says that it is worth it. Under the claim, for
   * it locks as many rows as a pass does, in another order.
   */
  async hurry(zone: string): Promise<void> {
    await withTimeout(
      sql`
        update dns_names set next_attempt_at = statement_timestamp()
        where zone = ${zone} and applied_version < version and next_attempt_at > statement_timestamp()`,
      timeoutMs,
    )
  },

  /** How many names of the zone are not as desired, and of them how many have failed. */
  async unapplied(zone: string): Promise<{ pending: number; failing: number }> {
    const [row] = await withTimeout(
      sql<{ pending: number; failing: number }[]>`
        select count(*) as pending, count(failure) as failing from dns_names
        where zone = ${zone} and applied_version < version`,
      timeoutMs,
    )
    return row ?? { pending: 0, failing: 0 }
  },
})

import type { Sessions, Sql } from './client.ts'
import { withTimeout } from './time.ts'

export interface ConnectionCount {
  /** Sessions at the server, of all databases and clients. */
  readonly open: number
  /** Sessions that the server accepts from users without special privileges. */
  readonly max: number
}

/** Counts the sessions of the server. Needs no privilege. */
export const countConnections = async (sql: Sql, timeoutMs: number): Promise<ConnectionCount> => {
  const [row] = await withTimeout(
    sql<ConnectionCount[]>`
      select sum(numbackends)::int as open,
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
          - coalesce(current_setting('reserved_connections', true), '0')::int as max
      from pg_stat_database`,
    timeoutMs,
  )
  if (!row) throw new Error('pg_stat_database has no row')
  return row
}

export interface HealthCheckOptions {
  /** Milliseconds after which a check that has not ended counts as failed. */
  readonly timeoutMs: number
  /** Milliseconds for which a result is returned again, so that probes cause a bounded number of checks. */
  readonly keepMs: number
}

/** Returns a function that reports whether `check` succeeds in time. Concurrent calls share one check. */
export const createHealthCheck = (
  check: () => PromiseLike<unknown>,
  { timeoutMs, keepMs }: HealthCheckOptions,
): (() => Promise<boolean>) => {
  let latest: Promise<boolean> | undefined
  let validUntil = Number.POSITIVE_INFINITY
  const run = async () => {
    try {
      await withTimeout(Promise.resolve(check()), timeoutMs)
      return true
    } catch {
      return false
    } finally {
      validUntil = performance.now() + keepMs
    }
  }
  return () => {
    if (latest === undefined || performance.now() >= validUntil) {
      validUntil = Number.POSITIVE_INFINITY
      latest = run()
    }
    return latest
  }
}

export const DURABILITIES = ['synchronous', 'single', 'asynchronous', 'volatile'] as const

/**
 * What a commit has survived when it is acknowledged. `synchronous`: it is on a standby as well. `single`: it is on this
 * server's disk, and there is no standby. `asynchronous`: a standby that is promoted may lack it. `volatile`: the server
 * itself may lose it.
 */
export type Durability = (typeof DURABILITIES)[number]

interface ProbeRow {
  readonly synchronousCommit: string
  readonly standbyNames: string
  readonly fsync: string
  readonly hasStandby: boolean
}

export const toDurability = ({ synchronousCommit, standbyNames, fsync, hasStandby }: ProbeRow): Durability => {
  if (synchronousCommit === 'off' || fsync === 'off') return 'volatile'
  // `local` waits for this server only, whatever standbys are configured.
  if (standbyNames.trim() !== '' && synchronousCommit !== 'local') return 'synchronous'
  return hasStandby ? 'asynchronous' : 'single'
}

const SLOTS = 1_000

/**
 * Returns a function that writes a row of `table`, which has the columns slot and written_at, and reports how durable the
 * write is. It rejects if the database accepts no writes.
 */
export const createWriteProbe = (sql: Sql, table: string, random: () => number): (() => Promise<Durability>) => {
  const slot = Math.floor(random() * SLOTS)
  return async () => {
    const [row] = await sql<ProbeRow[]>`
      insert into ${sql(table)} as p (slot, written_at) values (${slot}, statement_timestamp())
      on conflict (slot) do update set written_at = excluded.written_at
      returning current_setting('synchronous_commit') as "synchronousCommit",
        current_setting('synchronous_standby_names') as "standbyNames",
        current_setting('fsync') as fsync,
        exists (select from pg_stat_replication)
          or exists (select from pg_replication_slots where slot_type = 'physical') as "hasStandby"`
    if (!row) throw new Error('the write probe returned no row')
    return toDurability(row)
  }
}

export interface WriteCheckOptions {
  readonly probe: () => Promise<Durability>
  /** They are replaced when the database accepts writes again: those that began before may not accept any. */
  readonly sessions: Pick<Sessions, 'expire'>
  /** Acknowledged writes can be lost, which they could not at the last check that succeeded, or not in this way. */
  readonly onWeak: (durability: 'asynchronous' | 'volatile') => void
}

/** Checks with `probe` whether the database accepts writes, and how durable they are. */
export const createWriteCheck = ({ probe, sessions, onWeak }: WriteCheckOptions) => {
  let durability: Durability | null = null
  let lastKnown: Durability | null = null
  return {
    /** As of the last check; null: the database accepted no write, or there was no check. */
    durability: (): Durability | null => durability,
    /** Rejects if the database accepts no writes. */
    async check(): Promise<void> {
      const latest = await probe().catch(error => {
        durability = null
        throw error
      })
      if (durability === null) sessions.expire()
      if (latest !== lastKnown && (latest === 'asynchronous' || latest === 'volatile')) onWeak(latest)
      durability = latest
      lastKnown = latest
    },
  }
}

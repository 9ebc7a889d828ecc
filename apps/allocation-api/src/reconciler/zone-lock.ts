import { createDatabaseClient, type Sql } from '@pool/database/client'
import { withTimeout } from '@pool/database/with-timeout'

/** Milliseconds, the same for every claim. */
export interface ClaimLimits {
  /** How long to queue behind another writer. */
  readonly waitMs: number
  /** How long a writer may stay silent before the database takes the claim away. */
  readonly holdMs: number
  /** How long one statement may take. */
  readonly timeoutMs: number
}

export interface ZoneLock {
  /** Throws when the claim is lost, as it is when the database or the connection to it went away. */
  confirm(): Promise<void>
}

export type ZoneLocks = ReturnType<typeof createZoneLocks>

/**
 * The right to be the only one among all replicas who does what `name` stands for, such as to write a zone: a row lock
 * in an open transaction. Waiting for it is queueing, and a writer that dies loses it with its connection, at once.
 *
 * Each claim has a connection of its own, a client with a single one, and speaks the transaction itself. The driver's
 * own transactions are not used: when the connection dies in one, version 3.4.9 can write to the socket that is gone,
 * which ends the process, or run the rest on another session (its issues 1208 and 1216, seen 2026-11-21). Here a
 * statement that comes to another session finds another transaction, and the claim is known to be lost.
 */
export const createZoneLocks = (url: string, limits: ClaimLimits) => {
  const { waitMs, holdMs, timeoutMs } = limits
  const idle: Sql[] = []
  const used = new Set<Sql>()

  const hold = async <Result>(
    sql: Sql,
    name: string,
    work: (claim: ZoneLock) => Promise<Result>,
  ): Promise<Result | null> => {
    await withTimeout(sql`insert into dns_zone_locks (name) values (${name}) on conflict do nothing`, timeoutMs)
    await withTimeout(sql`begin`, timeoutMs)
    try {
      await withTimeout(
        sql`select set_config('lock_timeout', ${`${waitMs}ms`}, true),
          set_config('idle_in_transaction_session_timeout', ${`${holdMs}ms`}, true)`,
        timeoutMs,
      )
      // The lock gives the transaction its number, which no other ever has.
      const [held] = await withTimeout(
        sql<{ transaction: string }[]>`
          with held as (select name from dns_zone_locks where name = ${name} for update)
          select pg_current_xact_id()::text as transaction from held`,
        waitMs + timeoutMs,
      ).catch((error: unknown) => {
        if (error instanceof Error && 'code' in error && error.code === '55P03') return []
        throw error
      })
      if (!held) return null
      return await work({
        confirm: async () => {
          const [now] = await withTimeout(
            sql<{ isOurs: boolean | null }[]>`
              select pg_current_xact_id_if_assigned()::text = ${held.transaction} as "isOurs"`,
            timeoutMs,
          )
          if (!now?.isOurs) throw new Error(`the claim of ${name} was lost`)
        },
      })
    } finally {
      // Nothing was written under the claim that must not be kept: what a pass did stands in statements of its own.
      await withTimeout(sql`commit`, timeoutMs)
    }
  }

  return {
    /** Runs `work` under the claim; null when it could not be had within `waitMs`. */
    async claim<Result>(name: string, work: (claim: ZoneLock) => Promise<Result>) {
      const sql =
        idle.pop() ??
        createDatabaseClient(url, {
          maxConnections: 1,
          applicationName: 'allocation-api zone',
          maxStatementMs: waitMs + timeoutMs,
        })
      used.add(sql)
      try {
        const result = await hold(sql, name, work)
        idle.push(sql)
        return result
      } catch (error) {
        // Whatever state it is in, the connection is not used again; closing it gives the lock up.
        void sql.end({ timeout: 0 }).catch(() => {})
        throw error
      } finally {
        used.delete(sql)
      }
    },
    async close(): Promise<void> {
      await Promise.all([...idle.splice(0), ...used].map(sql => sql.end({ timeout: 0 })))
    },
  }
}

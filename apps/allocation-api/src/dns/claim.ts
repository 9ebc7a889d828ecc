import { connect, type Sql, within } from '../database/connect.ts'

/** Milliseconds, the same for every claim. */
export interface ClaimLimits {
  /** How long to queue behind another writer. */
  readonly waitMs: number
  /** How long a writer may stay silent before the database takes the claim away. */
  readonly holdMs: number
  /** How long one statement may take. */
  readonly timeoutMs: number
}

export interface Claim {
  /** Throws when the claim is lost, as it is when the database or the connection to it went away. */
  confirm(): Promise<void>
  /** The pass brought the zone to all that was due. */
  converged(): Promise<void>
}

export type Claims = ReturnType<typeof createClaims>

/**
 * The right to be the only writer of a zone among all replicas: a row lock in an open transaction. Waiting for it is
 * queueing, and a writer that dies loses it with its connection, at once.
 *
 * Each claim has a connection of its own, a client with a single one, and speaks the transaction itself. The driver's
 * own transactions are not used: when the connection dies in one, version 3.4.9 can write to the socket that is gone,
 * which ends the process, or run the rest on another session (its issues 1208 and 1216, seen 2026-11-21). Here a
 * statement that comes to another session finds another transaction, and the claim is known to be lost.
 */
export const createClaims = (url: string, limits: ClaimLimits) => {
  const { waitMs, holdMs, timeoutMs } = limits
  const idle: Sql[] = []
  const used = new Set<Sql>()

  const hold = async <Result>(
    sql: Sql,
    zone: string,
    work: (claim: Claim) => Promise<Result>,
  ): Promise<Result | null> => {
    await within(timeoutMs, sql`insert into dns_zones (zone) values (${zone}) on conflict do nothing`)
    await within(timeoutMs, sql`begin`)
    try {
      await within(
        timeoutMs,
        sql`select set_config('lock_timeout', ${`${waitMs}ms`}, true),
          set_config('idle_in_transaction_session_timeout', ${`${holdMs}ms`}, true)`,
      )
      // The lock gives the transaction its number, which no other ever has.
      const [held] = await within(
        waitMs + timeoutMs,
        sql<{ transaction: string }[]>`
          with held as (select zone from dns_zones where zone = ${zone} for update)
          select pg_current_xact_id()::text as transaction from held`,
      ).catch((error: unknown) => {
        if (error instanceof Error && 'code' in error && error.code === '55P03') return []
        throw error
      })
      if (!held) return null
      const own = sql`pg_current_xact_id_if_assigned()::text = ${held.transaction}`
      return await work({
        confirm: async () => {
          const [now] = await within(timeoutMs, sql<{ isOurs: boolean | null }[]>`select ${own} as "isOurs"`)
          if (!now?.isOurs) throw new Error(`the claim of ${zone} was lost`)
        },
        converged: async () => {
          await within(
            timeoutMs,
            sql`update dns_zones set converged_at = clock_timestamp() where zone = ${zone} and ${own}`,
          )
        },
      })
    } finally {
      // Nothing was written under the claim that must not be kept: what a pass did stands in statements of its own.
      await within(timeoutMs, sql`commit`)
    }
  }

  return {
    /** Runs `work` as the zone's only writer; null when the claim could not be had within `waitMs`. */
    async claim<Result>(zone: string, work: (claim: Claim) => Promise<Result>) {
      const sql =
        idle.pop() ??
        connect(url, { connections: 1, applicationName: 'allocation-api zone', slowestMs: waitMs + timeoutMs })
      used.add(sql)
      try {
        const result = await hold(sql, zone, work)
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

import { createDatabaseClient, type Fragment, type Sql } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/time'

/** Milliseconds, the same for every lock. */
export interface ZoneLockLimits {
  /** How long to queue behind another holder. */
  readonly waitMs: number
  /** How long a holder may send no statement before Postgres ends its transaction, and with it the lock. */
  readonly idleTimeoutMs: number
  /** How long one statement may take. */
  readonly timeoutMs: number
}

interface IdleClient {
  readonly sql: Sql
  /** The silences of the sessions when it was used last. */
  readonly silences: number
}

/** Executes statements on the connection of a lock. */
export interface LockLane {
  readonly sql: Sql
  /**
   * A condition that is false once the lock is lost, which may have opened another session. Each write must contain it, and
   * its value is read with them.
   */
  readonly isHeld: Fragment
}

export interface ZoneLock {
  /** The id of the transaction that holds the lock, which no other transaction ever has. */
  readonly transaction: string
  /** Throws a `ZoneLockLostError` if the database, or the connection to it, went away since the lock was acquired. */
  assertHeld(): Promise<void>
  /**
   * Executes the last statement of the work, which `execute` sends before it returns, in the transaction that holds the lock,
   * and commits it, in one round trip. `execute` resolves with the value of `isHeld` in the statement. Rejects with a
   * `ZoneLockLostError` if the lock is lost; then the statement has no effect. Its result waits for no flush: a crash of the
   * server within a second can undo it, and then the next work finds the state before it.
   */
  finish(execute: (lane: LockLane) => Promise<boolean>): Promise<void>
}

export class ZoneLockLostError extends Error {
  constructor(name: string) {
    super(`zone lock lost: ${name}`)
  }
}

export type ZoneLocks = ReturnType<typeof createZoneLocks>

/** The SQLSTATE of an exceeded lock_timeout. */
const LOCK_NOT_AVAILABLE = '55P03'

/** Reads in the round trip that acquires the lock, after it is acquired: it sends its statements before it returns. */
export type ReadFirst<First> = (sql: Sql) => Promise<First>

/** Runs `work` while it holds the lock of `name`; null if the lock was not free for too long. */
export type WithLock = <Result, First = null>(
  name: string,
  work: (lock: ZoneLock, first: First) => Promise<Result>,
  readFirst?: ReadFirst<First>,
) => Promise<Result | null>

/** Whether the transaction of a lock is in progress, for a statement of another session. It fails on a standby. */
export const isTransactionOpen = (sql: Sql, transaction: string) =>
  sql`pg_xact_status(${transaction}::xid8) = 'in progress'`

/**
 * Exclusive locks among all replicas: a row lock in an open transaction. Waiters queue. If the holder dies, Postgres
 * releases the lock when the connection closes.
 *
 * Each lock has its own connection, a client with a single one, and sends `begin` and `commit` itself. The driver's own
 * transactions are not used: if the connection dies in one, version 3.4.9 can write to the closed socket, which ends the
 * process, or run the rest on another session (its issues 1208 and 1216). Here a statement that
 * reaches another session finds another transaction, so the lost lock is noticed.
 *
 * The connections are not among `sessions`, which would close one that holds a lock. `sessions` only report a silent server.
 */
export const createZoneLocks = (url: string, limits: ZoneLockLimits, sessions: { readonly silences: number }) => {
  const { waitMs, idleTimeoutMs, timeoutMs } = limits
  const idle: IdleClient[] = []
  const inUse = new Set<Sql>()

  const close = (sql: Sql): void => void sql.end({ timeout: 0 }).catch(() => {})

  /** Not one whose server may have vanished: its first statement would wait in vain. */
  const takeIdle = (): Sql | null => {
    for (let client = idle.pop(); client; client = idle.pop()) {
      if (client.silences === sessions.silences) return client.sql
      close(client.sql)
    }
    return null
  }

  /**
   * The id of the transaction that holds the lock; `busy` after `waitMs`; `unknown` if the lock has no row yet. The settings of
   * the transaction are a condition on the row, which the server evaluates before it locks the row.
   */
  const acquire = async (sql: Sql, name: string): Promise<{ readonly transaction: string } | 'busy' | 'unknown'> => {
    const query = sql<{ transaction: string }[]>`
      with held as (
        select name from dns_zone_locks
        where name = ${name} and set_config('lock_timeout', ${`${waitMs}ms`}, true) is not null
          and set_config('idle_in_transaction_session_timeout', ${`${idleTimeoutMs}ms`}, true) is not null
          and set_config('synchronous_commit', 'off', true) is not null
        for update
      )
      select pg_current_xact_id()::text as transaction from held`
    try {
      const [held] = await withTimeout(query, waitMs + timeoutMs)
      return held ?? 'unknown'
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === LOCK_NOT_AVAILABLE) return 'busy'
      throw error
    }
  }

  const isCurrentTransaction = async (sql: Sql, transaction: string): Promise<boolean> => {
    const [row] = await withTimeout(
      sql<{ isCurrent: boolean | null }[]>`
        select pg_current_xact_id_if_assigned()::text = ${transaction} as "isCurrent"`,
      timeoutMs,
    )
    return row?.isCurrent === true
  }

  const commit = (sql: Sql) => withTimeout(sql`commit`, timeoutMs)

  /** Sends everything at once. The driver executes it in its order, because the client has a single connection. */
  const begin = async <First>(sql: Sql, name: string, readFirst: ReadFirst<First>) => {
    const steps = [
      withTimeout(sql`begin`, timeoutMs),
      acquire(sql, name),
      withTimeout(readFirst(sql), waitMs + timeoutMs),
    ] as const
    // After the first rejection, the others are not awaited.
    void Promise.allSettled(steps)
    const [began, acquired, first] = steps
    await began
    const lock = await acquired
    return typeof lock === 'string' ? lock : { ...lock, first: await first }
  }

  const runInTransaction = async <Result, First>(
    sql: Sql,
    name: string,
    work: (lock: ZoneLock, first: First) => Promise<Result>,
    readFirst: ReadFirst<First>,
  ): Promise<Result | null> => {
    let isFinished = false
    try {
      let held = await begin(sql, name, readFirst)
      while (held === 'unknown') {
        await commit(sql)
        await withTimeout(sql`insert into dns_zone_locks (name) values (${name}) on conflict do nothing`, timeoutMs)
        held = await begin(sql, name, readFirst)
      }
      if (held === 'busy') return null
      const { transaction, first } = held
      const assertHeld = async () => {
        if (!(await isCurrentTransaction(sql, transaction))) throw new ZoneLockLostError(name)
      }
      const isHeld = sql`pg_current_xact_id_if_assigned() is not distinct from ${transaction}::xid8`
      const lock: ZoneLock = {
        transaction,
        assertHeld,
        async finish(execute) {
          isFinished = true
          // Sent in this order: a query is sent when something waits for it.
          const executed = withTimeout(execute({ sql, isHeld }), timeoutMs)
          const [wasHeld] = await Promise.all([executed, commit(sql)])
          if (!wasHeld) throw new ZoneLockLostError(name)
        },
      }
      return await work(lock, first)
    } finally {
      if (!isFinished) await commit(sql)
    }
  }

  return {
    /**
     * Runs `work` while it holds the lock of `name`; null if the lock was not free within `waitMs`. `work` gets what
     * `readFirst` returns.
     */
    async withLock<Result, First = null>(
      name: string,
      work: (lock: ZoneLock, first: First) => Promise<Result>,
      readFirst: ReadFirst<First> = async () => null as First,
    ): Promise<Result | null> {
      const sql =
        takeIdle() ??
        createDatabaseClient(url, {
          maxConnections: 1,
          applicationName: 'allocation-api zone',
          maxStatementMs: waitMs + timeoutMs,
          expires: false,
        })
      inUse.add(sql)
      try {
        const result = await runInTransaction(sql, name, work, readFirst)
        idle.push({ sql, silences: sessions.silences })
        return result
      } catch (error) {
        // The state of the connection is unknown, so it is not reused. Closing it releases the lock.
        close(sql)
        throw error
      } finally {
        inUse.delete(sql)
      }
    },
    async close(): Promise<void> {
      const clients = [...idle.splice(0).map(({ sql }) => sql), ...inUse]
      await Promise.all(clients.map(sql => sql.end({ timeout: 0 })))
    },
  }
}

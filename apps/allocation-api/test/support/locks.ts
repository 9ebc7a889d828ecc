import type { Sql } from '@pool/database/client'
import { until } from '@pool/test-kit/poll.ts'
import type { TransactionSql } from 'postgres'

type Transaction = TransactionSql<{ int8: number }>

export interface HeldLock {
  /** Rolls back. */
  release(): Promise<void>
  commit(): Promise<void>
}

/** Runs `take` in a transaction and keeps it open, and with it what it has locked, until it is ended. */
export const holdLock = async (sql: Sql, take: (tx: Transaction) => PromiseLike<unknown>): Promise<HeldLock> => {
  const taken = Promise.withResolvers<void>()
  const over = Promise.withResolvers<'commit' | 'release'>()
  const rolledBack = new Error('released')
  const ended = sql
    .begin(async tx => {
      await take(tx)
      taken.resolve()
      if ((await over.promise) === 'release') throw rolledBack
    })
    .catch((error: unknown) => {
      if (error !== rolledBack) taken.reject(error)
    })
  await taken.promise
  const end = async (how: 'commit' | 'release') => {
    over.resolve(how)
    await ended
  }
  return { release: () => end('release'), commit: () => end('commit') }
}

/** The row of one name, so that every statement that wants it waits, in the order in which they came. */
export const lockRow = (sql: Sql, name: { poolDomain: string; subdomain: string }): Promise<HeldLock> =>
  holdLock(
    sql,
    tx => tx`
      select from pool_allocations
      where pool_domain = ${name.poolDomain} and subdomain = ${name.subdomain} for update`,
  )

/** How many sessions of this database wait for a lock with a statement like `pattern`. */
export const countLockWaiters = async (sql: Sql, pattern = '%'): Promise<number> => {
  const [row] = await sql<{ count: number }[]>`
    select count(*) from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like ${pattern}`
  return row?.count ?? 0
}

export const untilSessionsWait = (sql: Sql, count: number, pattern = '%', withinMs = 20_000): Promise<true> =>
  until(
    `${count} sessions wait for a lock with ${pattern}`,
    async () => (await countLockWaiters(sql, pattern)) >= count || undefined,
    withinMs,
  )

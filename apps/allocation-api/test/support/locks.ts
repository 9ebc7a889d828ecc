import { randomUUID } from 'node:crypto'
import type { Sql } from '@pool/runtime/database/client'
import { until } from '@pool/test-kit/poll.ts'
import type { TransactionSql } from 'postgres'
import type { Lease } from '../../src/reconciler/zone-lock.ts'

type Transaction = TransactionSql<{ int8: number }>

export interface HeldLock {
  /** The process of the server that holds it. */
  readonly pid: number
  /** Rolls the transaction back. */
  release(): Promise<void>
  commit(): Promise<void>
}

/** Runs `lock` in a transaction and keeps the transaction, with its locks, open until `release` or `commit`. */
export const holdLock = async (sql: Sql, lock: (tx: Transaction) => PromiseLike<unknown>): Promise<HeldLock> => {
  const locked = Promise.withResolvers<number>()
  const ending = Promise.withResolvers<'commit' | 'release'>()
  const rolledBack = new Error('released')
  const ended = sql
    .begin(async tx => {
      await lock(tx)
      const [session] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`
      locked.resolve(session?.pid ?? 0)
      if ((await ending.promise) === 'release') throw rolledBack
    })
    .catch((error: unknown) => {
      if (error !== rolledBack) locked.reject(error)
    })
  const pid = await locked.promise
  const end = async (how: 'commit' | 'release') => {
    ending.resolve(how)
    await ended
  }
  return { pid, release: () => end('release'), commit: () => end('commit') }
}

/** Rolls back every transaction of this database that waits for its client. */
export const endOpenTransactions = (sql: Sql): PromiseLike<unknown> => sql`
  select pg_terminate_backend(pid) from pg_stat_activity
  where datname = current_database() and state like 'idle in transaction%'`

/** Locks the row of a name. Statements that need it queue in their order of arrival. */
export const lockRow = (sql: Sql, name: { poolDomain: string; subdomain: string }): Promise<HeldLock> =>
  holdLock(
    sql,
    tx => tx`
      select from pool_allocations
      where pool_domain = ${name.poolDomain} and subdomain = ${name.subdomain} for update`,
  )

export const lockDeployment = (sql: Sql, id: string): Promise<HeldLock> =>
  holdLock(sql, tx => tx`select from deployments where id = ${id} for update`)

/** The number of sessions of this database that wait for a lock in a statement like `pattern`. */
export const countLockWaiters = async (sql: Sql, pattern = '%'): Promise<number> => {
  const [row] = await sql<{ count: number }[]>`
    select count(*) from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like ${pattern}`
  return row?.count ?? 0
}

export const untilSessionsWait = (sql: Sql, count: number, pattern = '%', withinMs?: number): Promise<true> =>
  until(
    `${count} sessions wait for a lock in a statement like ${pattern}`,
    async () => (await countLockWaiters(sql, pattern)) >= count || undefined,
    withinMs,
  )

export const untilBlocks = (sql: Sql, { pid }: HeldLock): Promise<true> =>
  until('a session waits for the lock', async () => {
    const blocked = await sql`select from pg_stat_activity where ${pid} = any(pg_blocking_pids(pid))`
    return blocked.length > 0 || undefined
  })

/** Nothing of the requests so far can still take place: no statement of a replica is executed or waits. */
export const untilNoStatementRuns = (sql: Sql): Promise<true> =>
  until('no statement of a replica runs', async () => {
    const active = await sql`
      select from pg_stat_activity
      where datname = current_database() and state = 'active' and application_name like 'allocation-api%'`
    return active.length === 0 || undefined
  })

/** The results of both statements when the first one is ahead of the second in the queue for the row of a name. */
export const runInOrder = async <First, Second>(
  sql: Sql,
  name: { poolDomain: string; subdomain: string },
  first: () => Promise<First>,
  second: () => Promise<Second>,
): Promise<[First, Second]> => {
  const held = await lockRow(sql, name)
  const firstResult = first()
  await untilSessionsWait(sql, 1)
  const secondResult = second()
  await untilSessionsWait(sql, 2)
  await held.release()
  return Promise.all([firstResult, secondResult])
}

/** Runs statements of the work under a zone lock, which is taken from whoever has it. */
export const withLease = async <Result>(
  sql: Sql,
  name: string,
  work: (lease: Lease) => Promise<Result>,
): Promise<Result> => {
  const holder = randomUUID()
  await sql`
    insert into zone_leases as l (name, holder) values (${name}, ${holder})
    on conflict (name) do update set holder = excluded.holder, version = l.version + 1`
  try {
    return await work({ name, holder })
  } finally {
    await sql`update zone_leases set holder = null, version = version + 1 where name = ${name}`
  }
}

import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import type { Fragment, Sql } from './client.ts'
import { isDatabaseReadOnly, isNotExecuted, mayStillExecute, NotWrittenError } from './errors.ts'
import { type ServerClock, withTimeout } from './time.ts'

/** The two parts that make a statement safe to abandon: see `createWriter`. */
export interface Guard {
  /**
   * A condition that is always true. Its evaluation limits each lock wait that follows in the transaction, so the first
   * part of the statement must contain it.
   */
  readonly limitLockWait: Fragment
  /**
   * A value that is always true; an error after the deadline. `written` is an expression that is not null and reads every
   * part of the statement that can wait for a lock, because the server evaluates it after these have their locks.
   */
  readonly assertInTime: (written: Fragment) => Fragment
}

export type Execute<Result> = (sql: Sql, guard: Guard) => PromiseLike<Result>

export interface WriterOptions {
  /** For statements that do not wait for locks. It may pipeline. */
  readonly fast: Sql
  /** For statements that wait. Without pipelining: other statements would wait behind them. */
  readonly slow: Sql
  readonly clock: ServerClock
  /** Milliseconds from the call of `write` to its deadline. */
  readonly timeoutMs: number
  /** How long a statement may wait for a lock in the fast lane. */
  readonly fastLockWaitMs?: number
}

/** SQLSTATEs of the function `assert_in_time`. In both cases nothing took place. */
const OTHER_SERVER = '57PD1'
const LATE = '57PD2'
/** The SQLSTATE of an exceeded lock_timeout. */
const LOCK_NOT_AVAILABLE = '55P03'

/** Statements of other rows on the same connection wait as long. Most conflicts between requests are shorter. */
const FAST_LOCK_WAIT_MS = 50
/** After this time a statement of another row gets the connection. */
const SLOW_LOCK_WAIT_MS = 500
/** The time that a commit may take after the deadline was checked; at most a tenth of the timeout. */
const COMMIT_MS = 50
/** Of all rows. Another request is rejected immediately. */
const MAX_WAITING = 1_000
/** How often a write is tried again because the server was not the one that the deadline was made for. */
const MAX_CLOCK_RETRIES = 2

const hasCode = (error: unknown, ...codes: string[]): boolean =>
  error instanceof postgres.PostgresError && codes.includes(error.code)

/** Whether a statement waited too long for a lock. It had no effect. */
export const isLockTimeout = (error: unknown): boolean => hasCode(error, LOCK_NOT_AVAILABLE)

/** `time` is in milliseconds of `performance.now()`. */
const waitUntil = async (time: number): Promise<void> => {
  const remainingMs = time - performance.now()
  if (remainingMs > 0) await sleep(remainingMs)
}

/** The writes of one row in this process. One at a time executes. */
interface RowQueue {
  tail: Promise<unknown>
  length: number
  /** The last statement waited for the row in vain. */
  isLocked: boolean
}

export type Writer = ReturnType<typeof createWriter>

/**
 * Executes writes. None passes its deadline, even if its caller no longer waits, and a locked row delays no other row.
 *
 * Deadline: a statement that was blocked, or lay in the buffer of a connection or of a suspended server, can execute long
 * after its caller has timed out. Each statement therefore compares the server's clock with its deadline, after its last
 * lock. A statement that passes may still be committing when its caller times out.
 *
 * Locked rows: the writes of one row are executed one at a time. In the fast lane, a statement waits for a lock for some
 * milliseconds only. Then it is executed in the slow lane, and so are the next ones until one succeeds.
 */
export const createWriter = ({ fast, slow, clock, timeoutMs, fastLockWaitMs = FAST_LOCK_WAIT_MS }: WriterOptions) => {
  const marginMs = Math.min(COMMIT_MS, timeoutMs / 10)
  const queues = new Map<string, RowQueue>()
  /** Requests that are not the first of their queue. */
  let waiting = 0

  /** `deadline` is in milliseconds of `performance.now()`. */
  const attempt = async <Result>(
    sql: Sql,
    maxLockWaitMs: number,
    deadline: number,
    execute: Execute<Result>,
  ): Promise<Result> => {
    for (let retries = 0; ; retries += 1) {
      const { server, deadlineMs } = await clock.toServerDeadline(deadline - marginMs)
      // So that a statement that waits to the end is rolled back before its caller times out.
      const remainingMs = deadline - marginMs - performance.now()
      const lockWaitMs = Math.ceil(Math.min(maxLockWaitMs, Math.max(1, remainingMs)))
      try {
        return await execute(sql, {
          limitLockWait: sql`set_config('lock_timeout', ${`${lockWaitMs}ms`}, true) is not null`,
          // The conditions of `assert_in_time`. The function only raises the error, because a call costs more than
          // the conditions.
          // `case` keeps the order: first what was written, then the clock. `to_timestamp` is exact to the microsecond, and
          // `extract` computes with numerics, which is slower.
          assertInTime: written => sql`case
            when case when ${written} is not null then
                pg_postmaster_start_time() = to_timestamp(${server}::float8)
                and clock_timestamp() < to_timestamp(${deadlineMs}::float8 / 1000)
              end then true
            else assert_in_time(${server}, ${deadlineMs}::float8, 0)
          end`,
        })
      } catch (error) {
        if (!hasCode(error, OTHER_SERVER, LATE)) throw error
        clock.reset()
        if (retries >= MAX_CLOCK_RETRIES || performance.now() >= deadline - marginMs) throw error
      }
    }
  }

  const executeInQueue = async <Result>(
    queue: RowQueue,
    deadline: number,
    execute: Execute<Result>,
  ): Promise<Result> => {
    for (;;) {
      const remainingMs = deadline - performance.now()
      if (remainingMs <= (queue.isLocked ? marginMs : 0)) throw new NotWrittenError('the row is locked')
      try {
        const result = queue.isLocked
          ? attempt(slow, SLOW_LOCK_WAIT_MS, deadline, execute)
          : attempt(fast, fastLockWaitMs, deadline, execute)
        return await withTimeout(result, remainingMs)
      } catch (error) {
        if (!isLockTimeout(error)) throw error
        queue.isLocked = true
      }
    }
  }

  const enqueue = async <Result>(rowName: string, deadline: number, execute: Execute<Result>): Promise<Result> => {
    const queue = queues.get(rowName) ?? { tail: Promise.resolve(), length: 0, isLocked: false }
    const isWaiting = queue.length > 0
    if (isWaiting && waiting >= MAX_WAITING) throw new NotWrittenError('too many requests wait for locked rows')
    queues.set(rowName, queue)
    queue.length += 1
    if (isWaiting) waiting += 1
    const result = queue.tail.then(() => {
      if (isWaiting) waiting -= 1
      return executeInQueue(queue, deadline, execute)
    })
    queue.tail = result.then(
      () => {
        queue.isLocked = false
      },
      () => {},
    )
    try {
      return await result
    } finally {
      queue.length -= 1
      if (queue.length === 0) queues.delete(rowName)
    }
  }

  return {
    /** To build fragments, and for statements that wait for no lock. */
    sql: fast,

    /**
     * Executes a write of one row, which `rowName` identifies. `inBatch` executes it with others in one statement, unless
     * the row is known to be locked; it settles within the timeout. Rejects with a `TimeoutError` after the timeout, and
     * with a `NotWrittenError` if the write certainly had no effect. If the connection was lost, it rejects at the
     * deadline, because the server may execute the statement until then.
     */
    async write<Result>(rowName: string, execute: Execute<Result>, inBatch?: () => Promise<Result>): Promise<Result> {
      const deadline = performance.now() + timeoutMs
      const isLocked = queues.get(rowName)?.isLocked ?? false
      try {
        if (inBatch && !isLocked) {
          try {
            return await inBatch()
          } catch (error) {
            if (!isLockTimeout(error)) throw error
          }
        }
        return await withTimeout(enqueue(rowName, deadline, execute), Math.max(0, deadline - performance.now()))
      } catch (error) {
        if (isNotExecuted(error) && !isDatabaseReadOnly(error)) {
          throw new NotWrittenError('the database did not execute the write', { cause: error })
        }
        if (mayStillExecute(error)) await waitUntil(deadline)
        throw error
      }
    },

    /**
     * Executes a statement of several rows once, in the fast lane. If it waits too long for one of them, `isLockTimeout` is
     * true of the error.
     */
    async executeOnce<Result>(execute: Execute<Result>, deadline = performance.now() + timeoutMs): Promise<Result> {
      return withTimeout(attempt(fast, fastLockWaitMs, deadline, execute), Math.max(0, deadline - performance.now()))
    },
  }
}

import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import { createBatcher } from './batcher.ts'
import type { Fragment, Sql } from './client.ts'
import { isDatabaseReadOnly, isNotExecuted, mayStillExecute, NotWrittenError } from './errors.ts'
import { type ServerClock, withTimeout } from './time.ts'

/** What makes a statement safe to abandon: see `createWriter`. */
export interface Limits {
  /** The lock_timeout of the statement, with its unit. */
  readonly lockWait: string
  /** The server by whose clock the deadline was calculated. */
  readonly server: string
  /** Unix time in milliseconds. */
  readonly deadlineMs: number
}

/** The limits as two parts of a statement. */
export interface Guard {
  /**
   * A condition that is always true. Its evaluation limits each lock wait that follows in the transaction, so the first
   * part of the statement must contain it.
   */
  readonly limitLockWait: Fragment
  /**
   * A value that is always true; an error after the deadline. `parts` are all parts of the statement that write: the server
   * evaluates it after these have their locks.
   */
  readonly assertInTime: (parts: readonly string[]) => Fragment
}

type Attempt<Result> = (sql: Sql, limits: Limits) => PromiseLike<Result>

export type Execute<Result> = (sql: Sql, guard: Guard) => PromiseLike<Result>

/** A kind of write, whose requests share statements. */
export interface SharedWrite<Request, Result> {
  /** Names what the request changes. The first is the row that it waits for if it is locked. */
  readonly rowsOf: (request: Request) => readonly [string, ...string[]]
  /** Whether one statement decides requests for the same row, in their order; otherwise each has its own. */
  readonly repeatsRows?: boolean
  /** One statement, all or nothing. Returns one result per request, in their order. */
  readonly execute: (requests: readonly Request[], sql: Sql, limits: Limits) => Promise<readonly Result[]>
}

export interface WriterOptions {
  /** For statements that do not wait for locks. It may pipeline. */
  readonly fast: Sql
  /** For statements that wait. Without pipelining: other statements would wait behind them. */
  readonly slow: Sql
  readonly clock: ServerClock
  /** Milliseconds from the call of a write to its deadline. */
  readonly timeoutMs: number
  /** How long a statement may wait for a lock in the fast lane. */
  readonly fastLockWaitMs?: number
}

/** SQLSTATEs of the function `assert_in_time`. In both cases nothing took place. */
const OTHER_SERVER = '57PD1'
const LATE = '57PD2'
/** The SQLSTATE of an exceeded lock_timeout. */
const LOCK_NOT_AVAILABLE = '55P03'
/** The OID of the type `json`. */
const JSON_TYPE = 114

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

/** Of each kind. While one statement is shared, the next one gathers requests: larger batches save flushes as well. */
const BATCHING = {
  maxInFlight: 2,
  maxSharedInFlight: 1,
  /** Such a batch takes a few milliseconds, which is how long the requests behind it wait. */
  maxBatchSize: 100,
  /** A statement that takes longer waits for a locked row or a dead connection and must not block the other requests. */
  slowMs: 100,
}

const hasCode = (error: unknown, ...codes: string[]): boolean =>
  error instanceof postgres.PostgresError && codes.includes(error.code)

/** Whether a statement waited too long for a lock. It had no effect. */
export const isLockTimeout = (error: unknown): boolean => hasCode(error, LOCK_NOT_AVAILABLE)

/** `time` is in milliseconds of `performance.now()`. */
const waitUntil = async (time: number): Promise<void> => {
  const remainingMs = time - performance.now()
  if (remainingMs > 0) await sleep(remainingMs)
}

// The text of a shared statement has the requests as $1, JSON, and its limits as $2 to $4.

/** As `limitLockWait` of a guard. */
export const LIMIT_LOCK_WAIT = `set_config('lock_timeout', $2, true) is not null`

/**
 * As `assertInTime` of a guard; `written` is an expression that is not null and reads what is written. The conditions of the function `assert_in_time`, which only raises the error, because a call
 * costs more than the conditions. `case` keeps the order: first what was written, then the clock. `to_timestamp` is exact to
 * the microsecond, and `extract` computes with numerics, which is slower.
 */
export const assertInTime = (written: string): string => `case
    when case when ${written} is not null then
        pg_postmaster_start_time() = to_timestamp($3::text::float8)
        and clock_timestamp() < to_timestamp($4::float8 / 1000)
      end then true
    else assert_in_time($3::text, $4::float8, 0)
  end`

/** Executes the text of a shared statement. Type `json`, because the server reads the requests once. */
export const executeShared = async <Row extends object>(
  sql: Sql,
  text: string,
  requests: readonly object[],
  { lockWait, server, deadlineMs }: Limits,
): Promise<readonly Row[]> =>
  sql.unsafe<Row[]>(text, [sql.typed(requests as never, JSON_TYPE), lockWait, server, deadlineMs], { prepare: true })

/** An expression that reads every one of these parts of a statement to its end. The names are constants of the code. */
export const countRows = (parts: readonly string[]): string =>
  parts.map(part => `(select count(*) from ${part})`).join(' + ')

const toGuard = (sql: Sql, { lockWait, server, deadlineMs }: Limits): Guard => ({
  limitLockWait: sql`set_config('lock_timeout', ${lockWait}, true) is not null`,
  assertInTime: parts => sql`
    case when (${sql.unsafe(countRows(parts))}) is not null then assert_in_time(${server}, ${deadlineMs}::float8, 0) end`,
})

/** The writes of one row in this process that execute alone, one at a time. */
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
 * A write is in one of these states:
 *
 *   queued   waits for the next statement of its kind, or for an earlier request of its rows
 *   shared   in a statement with others, in the fast lane: a lock is waited for some milliseconds only
 *   alone    that statement, or an earlier write, has found the row locked: a statement of its own, after those of the row
 *            that wait already; first in the fast lane, then in the slow lane, again and again until the deadline
 *
 * Deadline: a statement that was blocked, or lay in the buffer of a connection or of a suspended server, can execute long
 * after its caller has timed out. Each statement therefore compares the server's clock with its deadline, after its last
 * lock. A statement that passes may still be committing when its caller times out.
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
    execute: Attempt<Result>,
  ): Promise<Result> => {
    for (let retries = 0; ; retries += 1) {
      const { server, deadlineMs } = await clock.toServerDeadline(deadline - marginMs)
      // So that a statement that waits to the end is rolled back before its caller times out.
      const remainingMs = deadline - marginMs - performance.now()
      const lockWait = `${Math.ceil(Math.min(maxLockWaitMs, Math.max(1, remainingMs)))}ms`
      try {
        return await execute(sql, { lockWait, server, deadlineMs })
      } catch (error) {
        if (!hasCode(error, OTHER_SERVER, LATE)) throw error
        clock.reset()
        if (retries >= MAX_CLOCK_RETRIES || performance.now() >= deadline - marginMs) throw error
      }
    }
  }

  const once = <Result>(deadline: number, execute: Attempt<Result>): Promise<Result> =>
    withTimeout(attempt(fast, fastLockWaitMs, deadline, execute), Math.max(0, deadline - performance.now()))

  const executeInQueue = async <Result>(
    queue: RowQueue,
    deadline: number,
    execute: Attempt<Result>,
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

  const enqueue = async <Result>(rowName: string, deadline: number, execute: Attempt<Result>): Promise<Result> => {
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

  const alone = <Result>(rowName: string, deadline: number, execute: Attempt<Result>): Promise<Result> =>
    withTimeout(enqueue(rowName, deadline, execute), Math.max(0, deadline - performance.now()))

  /** What a write that failed with `error` rejects with, as soon as it cannot execute any more. */
  const toFinalError = async (error: unknown, deadline: number): Promise<unknown> => {
    if (isNotExecuted(error) && !isDatabaseReadOnly(error)) {
      return new NotWrittenError('the database did not execute the write', { cause: error })
    }
    if (mayStillExecute(error)) await waitUntil(deadline)
    return error
  }

  return {
    /** To build fragments, and for statements that wait for no lock. */
    sql: fast,

    /** The function that executes a write of this kind. It rejects as `write` does. */
    share<Request, Result>({ rowsOf, repeatsRows = false, execute }: SharedWrite<Request, Result>) {
      const inBatch = createBatcher<Request, Result>({
        ...BATCHING,
        timeoutMs,
        execute: (requests, deadline) => once(deadline, (sql, limits) => execute(requests, sql, limits)),
      })
      return async (request: Request): Promise<Result> => {
        const deadline = performance.now() + timeoutMs
        const rows = rowsOf(request)
        const [row] = rows
        try {
          if (!queues.get(row)?.isLocked) {
            try {
              return await (repeatsRows ? inBatch(request) : inBatch(request, rows))
            } catch (error) {
              if (!isLockTimeout(error)) throw error
            }
          }
          const [result] = await alone(row, deadline, (sql, limits) => execute([request], sql, limits))
          return result as Result
        } catch (error) {
          throw await toFinalError(error, deadline)
        }
      }
    },

    /**
     * Executes a write of one row, which `rowName` identifies, alone. Rejects with a `TimeoutError` after the timeout, and
     * with a `NotWrittenError` if the write certainly had no effect. If the connection was lost, it rejects at the
     * deadline, because the server may execute the statement until then.
     */
    async write<Result>(rowName: string, execute: Execute<Result>): Promise<Result> {
      const deadline = performance.now() + timeoutMs
      try {
        return await alone(rowName, deadline, (sql, limits) => execute(sql, toGuard(sql, limits)))
      } catch (error) {
        throw await toFinalError(error, deadline)
      }
    },

    /** Executes a statement once, in the fast lane. If it waits too long for a row, `isLockTimeout` is true of the error. */
    executeOnce<Result>(execute: Execute<Result>): Promise<Result> {
      return once(performance.now() + timeoutMs, (sql, limits) => execute(sql, toGuard(sql, limits)))
    },
  }
}

import type postgres from 'postgres'

/** Not that of the client, which depends on this file. */
type Sql = postgres.Sql<{ int8: number }>

/** The result did not arrive in time. The operation may still take effect. */
export class TimeoutError extends Error {
  override readonly name = 'TimeoutError'
}

export const createTimeoutError = (timeoutMs: number): TimeoutError =>
  new TimeoutError(`no answer within ${Math.round(timeoutMs)} ms`)

/**
 * The result of `operation`, or a `TimeoutError` after `timeoutMs`. The operation is not cancelled; a later result or
 * error of it is ignored.
 */
export const withTimeout = <Result>(operation: PromiseLike<Result>, timeoutMs: number): Promise<Result> =>
  // Not `Promise.race`, which costs several promises per call: each request has several timeouts.
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(createTimeoutError(timeoutMs)), timeoutMs)
    operation.then(
      result => {
        clearTimeout(timer)
        resolve(result)
      },
      error => {
        clearTimeout(timer)
        reject(error)
      },
    )
  })

/** As `withTimeout`, but rejects with the reason of the signal once it aborts. */
export const untilAborted = async <Result>(operation: PromiseLike<Result>, signal: AbortSignal): Promise<Result> => {
  const aborted = Promise.withResolvers<never>()
  const onAbort = () => aborted.reject(signal.reason)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([operation, aborted.promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

// Time in SQL. Every decision uses the database's clock, never the clock of a replica.

/** The start of the statement, truncated to milliseconds as on the wire. */
export const NOW = `date_trunc('milliseconds', statement_timestamp())`

export const toInterval = (ms: number): string => `interval '${ms} milliseconds'`

export const timeSql = (sql: Sql) => ({
  /** See `NOW`. */
  now: sql.unsafe(NOW),
  milliseconds: (ms: number) => sql`${ms}::float8 * interval '1 millisecond'`,
})

/** A deadline on the clock of one server. */
export interface ServerDeadline {
  /** The start of the server process, which no other server shares. */
  readonly server: string
  /** Unix time in milliseconds. */
  readonly deadlineMs: number
}

interface Sample {
  readonly server: string
  readonly timeMs: number
  /** On the local monotonic clock, as every other time without a unit of the server. */
  readonly receivedAt: number
}

/** From this age on, the next call refreshes the sample in the background. */
const REFRESH_MS = 2_000
/** An older sample is not used: the server may have corrected its clock. */
const MAX_AGE_MS = 10_000
/** A slower answer only replaces a sample that is not usable: it makes deadlines earlier by its delay. */
const MAX_DELAY_MS = 50

export type ServerClock = ReturnType<typeof createServerClock>

/**
 * Converts deadlines to the clock of the database server, without trust in the clock of this machine. The server read its
 * clock before this process received the value, so the server's clock reaches the converted deadline at the same time
 * or earlier. A step of the server's clock is noticed within seconds.
 */
export const createServerClock = (sql: Sql, { timeoutMs }: { readonly timeoutMs: number }) => {
  let sample: Sample | null = null
  let pending: Promise<Sample> | null = null

  const isUsable = (candidate: Sample | null): candidate is Sample =>
    candidate !== null && performance.now() - candidate.receivedAt < MAX_AGE_MS

  const take = async (): Promise<Sample> => {
    const sentAt = performance.now()
    const [row] = await withTimeout(
      sql<Omit<Sample, 'receivedAt'>[]>`
        select extract(epoch from pg_postmaster_start_time())::text as server,
          extract(epoch from clock_timestamp())::float8 * 1000 as "timeMs"`,
      timeoutMs,
    )
    if (!row) throw new Error('the clock of the server was not returned')
    const taken = { ...row, receivedAt: performance.now() }
    if (!isUsable(sample) || taken.receivedAt - sentAt <= MAX_DELAY_MS) sample = taken
    return taken
  }

  const refresh = (): Promise<Sample> => {
    pending ??= take().finally(() => {
      pending = null
    })
    return pending
  }

  return {
    /** `deadline` is in milliseconds of `performance.now()`. Rejects if the server cannot be reached. */
    async toServerDeadline(deadline: number): Promise<ServerDeadline> {
      const current = isUsable(sample) ? sample : await refresh()
      if (performance.now() - current.receivedAt > REFRESH_MS) refresh().catch(() => {})
      return { server: current.server, deadlineMs: current.timeMs + (deadline - current.receivedAt) }
    },

    /** The sample was wrong: another server answers, or its clock was set. */
    reset(): void {
      sample = null
    },
  }
}

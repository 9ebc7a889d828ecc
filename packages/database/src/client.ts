import postgres from 'postgres'
import { createSocketFactory } from './socket-timeout.ts'

export type Sql = postgres.Sql<{ int8: number }>

export interface ConnectOptions {
  readonly connections: number
  readonly applicationName: string
  /**
   * Milliseconds that the slowest statement may take; twice as long without a byte, and the connection is taken for
   * dead. Absent: it is waited for as long as the kernel does.
   */
  readonly slowestMs?: number
}

const DAY_MS = 86_400_000

/**
 * The driver's setting for how many statements it sends on a connection behind one that is under way. None, when they
 * may not be prepared: the driver then asks for the types of the parameters (Parse, Describe, Flush) and waits for them
 * before it sends the rest. Behind another statement that answer can get lost for good, because PgBouncer before 1.22.1
 * counts nothing but Sync: at the ReadyForQuery before it, the server is taken away from the client (its issue 759; seen
 * 2026-11-22 with 1.18). So it goes out alone. The driver's own transactions, `begin`, do not work then (its issue 1210).
 */
const pipelineFor = (url: string): { max_pipeline?: number } =>
  // The driver says how it reads the URL. It connects to nothing before the first statement.
  postgres(url, { max: 1 }).options.prepare ? {} : { max_pipeline: 0 }

/**
 * A pool of connections, opened when needed. Nothing of it lives in a session, so it works behind a pooler in
 * transaction mode; one that cannot carry prepared statements needs `?prepare=false` in the URL.
 */
export const openClient = (url: string, options: ConnectOptions): Sql =>
  postgres(url, {
    max: options.connections,
    connect_timeout: 5,
    // Known to the driver, unknown to its types.
    ...({ socket: createSocketFactory(2 * (options.slowestMs ?? DAY_MS)), ...pipelineFor(url) } as object),
    // A database that comes back is found within a second, however long it was away.
    backoff: attempt => Math.min(1, 0.05 * 2 ** attempt),
    // Our own versions and counts stay far below 2^53.
    types: { int8: { to: 20, from: [20], serialize: String, parse: Number } },
    connection: { application_name: options.applicationName },
    // Only arrays need the types of the catalog; lists travel as JSON, and a new connection is a round trip sooner.
    fetch_types: false,
    onnotice: () => {},
  })

/** The database did not answer in time. Whether a write took place is unknown. */
export class DatabaseTimeout extends Error {
  override readonly name = 'DatabaseTimeout'
}

/**
 * The query's result, or `DatabaseTimeout` after `timeoutMs`. The clock is ours and not `statement_timeout`, because a
 * database that hangs keeps no time, and a pooler in transaction mode refuses the setting. The statement is not
 * cancelled: on a connection that carries several in a row, the request to stop could hit somebody else's.
 */
export const withTimeout = async <Result>(timeoutMs: number, query: PromiseLike<Result>): Promise<Result> => {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DatabaseTimeout(`no answer within ${timeoutMs} ms`)), timeoutMs)
  })
  try {
    return await Promise.race([query, timeout])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * SQLSTATE classes and codes that say: the database cannot serve now (Postgres manual, appendix A). A database that
 * does not exist, or refuses us (3D000, class 28), is away like one that is down: it may be there again in a moment. So is
 * one whose disk or memory fails it (class 58): nothing is wrong with the statement.
 */
const unavailableState = /^(?:08|28|3D000|53|57P|57014|58|25006|40001|40P01|55P03)/
const unavailableCode =
  /^(?:CONNECT|ECONN|ENOTFOUND|EAI_|EPIPE|ETIMEDOUT|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN|EADDRNOTAVAIL|ENOBUFS)/

/** Whether the server answered, and refused the user or the database that the connection string names. */
export const isRefusedConnection = (error: unknown): boolean =>
  error instanceof postgres.PostgresError && /^(?:28|3D000)/.test(error.code)

/** Whether the error means that the database is down, away or overloaded, rather than that we made a mistake. */
export const isDatabaseUnavailable = (error: unknown): boolean => {
  if (error instanceof DatabaseTimeout) return true
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return false
  return error instanceof postgres.PostgresError ? unavailableState.test(error.code) : unavailableCode.test(error.code)
}

/** Whether the server refused the statement for what it says: nothing of it was done, and it would be refused again. */
export const isRefusedStatement = (error: unknown): boolean =>
  error instanceof postgres.PostgresError && !isDatabaseUnavailable(error)

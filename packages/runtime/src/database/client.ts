import postgres from 'postgres'
import { createSocketFactory } from './connect-socket.ts'
import { parseConnectionString } from './connection-string.ts'
import { createSessions, type Sessions } from './sessions.ts'

export type Sql = postgres.Sql<{ int8: number }>

/** A part of a statement. */
export type Fragment = postgres.PendingQuery<postgres.Row[]>

export interface DatabaseClientOptions {
  readonly maxConnections: number
  readonly applicationName: string
  /**
   * Milliseconds that the slowest statement may take. A connection that receives nothing for twice as long after a write
   * is closed. Absent: only the kernel detects a lost peer.
   */
  readonly maxStatementMs?: number
  /** False: each connection carries one statement at a time, because its statements may wait for locks. */
  readonly pipelines?: boolean
  /** Settings of each session. A connection pooler may reject them. */
  readonly session?: Readonly<Record<string, string>>
  /** Seconds after which an idle connection is closed. Absent: never. */
  readonly idleTimeoutS?: number
  /** False: the driver never replaces a connection, because its transaction is in use. */
  readonly expires?: boolean
  /** Shared by pools whose sessions are replaced when one of them finds the database read-only or silent. Absent: its own. */
  readonly sessions?: Pick<Sessions, 'add'>
}

const DAY_MS = 86_400_000

/**
 * How many statements the driver may send on a connection before the first one is answered; none if statements cannot be
 * prepared. The driver then asks the server for the parameter types (Parse, Describe, Flush) and waits for the answer.
 * PgBouncer before 1.22.1 counts only Sync: at the ReadyForQuery of an earlier statement it takes the server away, and
 * that answer is lost (PgBouncer issue 759). The driver's own transactions (`begin`) do not
 * work with this setting (postgres issue 1210).
 */
const pipelineOptions = (url: string, pipelines: boolean): { max_pipeline?: number } =>
  // The driver parses the URL. It opens no connection before the first statement.
  pipelines && postgres(url, { max: 1 }).options.prepare ? {} : { max_pipeline: 0 }

const now = () => performance.now()

/**
 * A connection pool that connects on demand. It keeps no session state, so it works behind a pooler in transaction mode.
 * A pooler without prepared statements needs `?prepare=false` in the URL. Throws if the URL is not one that
 * `parseConnectionString` accepts.
 */
export const createDatabaseClient = (url: string, options: DatabaseClientOptions): Sql => {
  const connection = parseConnectionString(url)
  if ('issue' in connection) throw new Error(`the connection string ${connection.issue}`)
  const { driverUrl } = connection
  const socket = createSocketFactory(connection, {
    silenceMs: 2 * (options.maxStatementMs ?? DAY_MS),
    sessions: options.sessions ?? createSessions(now),
    now,
  })
  return postgres(driverUrl, {
    max: options.maxConnections,
    connect_timeout: 5,
    // The sockets are encrypted before the driver gets them.
    ssl: false,
    ...(connection.sessions === 'any' ? {} : { target_session_attrs: connection.sessions }),
    ...(options.idleTimeoutS === undefined ? {} : { idle_timeout: options.idleTimeoutS }),
    ...(options.expires === false ? { max_lifetime: null } : {}),
    // The driver accepts these two; its types do not declare them.
    ...({ socket, ...pipelineOptions(driverUrl, options.pipelines ?? true) } as object),
    // Reconnects within a second of the database's return, however long the outage was.
    backoff: attempt => Math.min(1, 0.05 * 2 ** attempt),
    // Versions and counts stay far below 2^53.
    types: { int8: { to: 20, from: [20], serialize: String, parse: Number } },
    connection: { application_name: options.applicationName, ...options.session },
    // Only array parameters need the catalog's types. Lists travel as JSON, which saves a round trip per connection.
    fetch_types: false,
    onnotice: () => {},
  })
}

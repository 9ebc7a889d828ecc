import { setTimeout as wait } from 'node:timers/promises'
import postgres from 'postgres'
import { createDatabaseClient, type DatabaseClientOptions, type Sessions, type Sql } from './client.ts'
import { isDatabaseReadOnly, isDatabaseUnavailable } from './errors.ts'
import { type MigrateOptions, migrate, type Schema } from './migrations.ts'
import { withTimeout } from './time.ts'

/** The operator must correct the configuration or the database. The message says what is wrong, then what to do. */
export class StartupError extends Error {
  override readonly name = 'StartupError'
}

export interface StartupExplanation {
  /** False: the database may accept the same attempt later. */
  readonly isFinal: boolean
  /** It quotes no value of the connection string and no text of the server. */
  readonly text: string
}

export interface ConnectionConfig {
  /** Whether the connection string asks for TLS. */
  readonly usesTls: boolean
  /** The environment variable with the connection string. */
  readonly urlVariable: string
}

const explainUnprepared = (urlVariable: string): string =>
  `the connection pooler does not support prepared statements; add prepare=false to ${urlVariable}, or set max_prepared_statements of PgBouncer`

/** SQLSTATE of the errors that a start ends with. */
const explainRejection = (code: string, { usesTls, urlVariable }: ConnectionConfig): string | null => {
  if (code === '28P01') return `the server rejects the user or the password; correct them in ${urlVariable}`
  if (code.startsWith('28')) {
    const entry = `check the user and the name of the database in ${urlVariable}, then that an entry of pg_hba.conf names both and this address, and that the role may log in: alter role <user> login`
    return usesTls
      ? `the server does not admit the user to the database from this address; ${entry}`
      : `the server does not admit the user to the database from this address without TLS; add sslmode=verify-full&sslrootcert=<file> or sslmode=require to ${urlVariable} if the server requires TLS; otherwise ${entry}`
  }
  if (code === '3D000') return `the database does not exist; create it, or correct ${urlVariable}`
  if (code === '42501') {
    return 'the role lacks a privilege; run migrate as a role that owns the tables and has: grant usage, create on schema public to <role>. Another role needs the grants that the doctor names'
  }
  if (code === '3F000') return 'the schema does not exist; create it, or correct search_path of the role'
  if (code === '26000' || code === '42P05') return explainUnprepared(urlVariable)
  return null
}

const toCode = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'no response'

/** What an operator does about an error of the first attempts to use the database. */
export const explainStartupError = (error: unknown, config: ConnectionConfig): StartupExplanation => {
  const code = toCode(error)
  const rejection = error instanceof postgres.PostgresError ? explainRejection(code, config) : null
  if (rejection !== null) return { isFinal: true, text: `${rejection} (${code})` }
  if (code.startsWith('CONNECT_TLS')) {
    return {
      // A handshake can fail because of the server's certificate, which its operator can replace.
      isFinal: code !== 'CONNECT_TLS_FAILED',
      text: `${(error as Error).message}; correct sslmode and sslrootcert in ${config.urlVariable}, or the certificate of the server`,
    }
  }
  // PgBouncer reports a wrong user, password or database with the same code as a database that does not respond.
  const reason =
    code === '08P01'
      ? `the connection pooler rejects the connection; check the user, the password and the name of the database in ${config.urlVariable} and in userlist.txt, whether the database responds, and the log of the pooler`
      : isDatabaseReadOnly(error)
        ? `the database accepts no writes; wait until it does, or name the primary in ${config.urlVariable}`
        : `the database cannot be reached; start the server, or correct the host and the port in ${config.urlVariable}`
  return { isFinal: false, text: `${reason} (${code})` }
}

export interface DatabaseWait {
  /** Why the last attempt failed. It has no secrets. */
  readonly reason: string
  /** Milliseconds since the first attempt. */
  readonly waitedMs: number
}

/** The connection is described for the explanation of errors. */
export interface WaitOptions extends ConnectionConfig {
  /** Called when the pause grows or the reason changes, and then once a minute. */
  readonly onWait: (wait: DatabaseWait) => void
  /** For tests. */
  readonly sleep?: (ms: number) => Promise<unknown>
}

const MIN_PAUSE_MS = 250
/** Below the 5 s in which the service is ready after the database is. */
const MAX_PAUSE_MS = 4_000
const REPORT_INTERVAL_MS = 60_000

/**
 * Calls `connect` again while the database is unavailable, with growing pauses and without an end. Any other error rejects:
 * with a `StartupError` if the operator can correct it.
 */
export const waitForDatabase = async (
  connect: () => Promise<void>,
  { onWait, sleep = wait, ...config }: WaitOptions,
): Promise<void> => {
  const startedAt = performance.now()
  let reported = { reason: '', at: Number.NEGATIVE_INFINITY }
  for (let pauseMs = MIN_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
    try {
      return await connect()
    } catch (error) {
      const explanation = explainStartupError(error, config)
      if (explanation.isFinal) throw new StartupError(explanation.text)
      if (!isDatabaseUnavailable(error)) throw error
      const { text: reason } = explanation
      const now = performance.now()
      if (pauseMs < MAX_PAUSE_MS || reason !== reported.reason || now - reported.at >= REPORT_INTERVAL_MS) {
        reported = { reason, at: now }
        onWait({ reason, waitedMs: now - startedAt })
      }
    }
    await sleep(pauseMs)
  }
}

/** Long enough for a statement, and short enough for a start. */
const CHECK_TIMEOUT_MS = 2_000
/** The SQLSTATE of an unknown prepared statement. */
const UNKNOWN_STATEMENT = '26000'

/**
 * Rejects with a `StartupError` if a connection pooler gives a prepared statement to a server connection that does not know
 * it. The driver repeats such a statement, but not reliably under load. `open` creates a client with one connection. A
 * pooler with a single server connection cannot be examined; its prepared statements work.
 */
export const checkPreparedStatements = async (
  sql: Sql,
  { open, urlVariable }: { readonly open: (sessions: Pick<Sessions, 'add'>) => Sql; readonly urlVariable: string },
): Promise<void> => {
  const session = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`
  // Only a pooler has process ids of its own.
  if (session.state.pid === session[0]?.pid) return
  let isUnknown = false
  const sessions: Pick<Sessions, 'add'> = {
    add(socket) {
      socket.on('sqlstate', code => {
        isUnknown ||= code === UNKNOWN_STATEMENT
      })
    },
  }
  const [prepared, other] = [open(sessions), open(sessions)]
  const execute = () => withTimeout(prepared`select ${1}::int as one`, CHECK_TIMEOUT_MS)
  try {
    await execute()
    // The transaction takes the server connection on which the statement was prepared, because it was used last.
    await withTimeout(other`begin`, CHECK_TIMEOUT_MS)
    await withTimeout(other`select 1 as one`, CHECK_TIMEOUT_MS)
    await execute().catch(() => {})
  } finally {
    await Promise.all([prepared, other].map(client => client.end({ timeout: 0 })))
  }
  if (isUnknown) throw new StartupError(explainUnprepared(urlVariable))
}

/** Settings of the server that end a session's work if its client no longer waits for it. */
export type SessionSettings = Readonly<Record<string, string>>

export interface AppliedSettings {
  /** What a client sends when it connects; empty if the server rejects that. */
  readonly parameters: SessionSettings
  /** The wanted settings that the sessions do not have. */
  readonly missing: SessionSettings
  readonly role: string
}

/**
 * `lock_timeout` is for locks of whole tables: the statements of requests limit their waits for rows themselves.
 * `client_connection_check_interval` ends statements of clients that are gone.
 */
export const createSessionSettings = (maxStatementMs: number): SessionSettings => ({
  client_connection_check_interval: '2s',
  lock_timeout: `${maxStatementMs}ms`,
  idle_in_transaction_session_timeout: '60s',
})

/** An unsupported startup parameter (PgBouncer); an unknown setting; a value that the platform does not support. */
const REJECTED_SQLSTATES = ['08P01', '42704', '22023']

const isRejected = (error: unknown): boolean =>
  error instanceof postgres.PostgresError && REJECTED_SQLSTATES.includes(error.code)

/** The settings of a new session that are off, and its role. */
const readMissing = async (sql: Sql, wanted: SessionSettings, timeoutMs: number) => {
  const rows = await withTimeout(
    sql<{ role: string; name: string | null }[]>`
      select current_user as role, s.name from (values (1)) one (n)
      left join pg_settings s on s.name in (select jsonb_array_elements_text(${sql.json(Object.keys(wanted))}))
        and s.setting <> '0'`,
    timeoutMs,
  )
  const present = rows.map(({ name }) => name)
  const missing = Object.fromEntries(Object.entries(wanted).filter(([name]) => !present.includes(name)))
  return { missing, role: rows[0]?.role ?? '' }
}

/**
 * Finds out whether sessions can have these settings. A connection pooler in transaction mode rejects them, because its
 * sessions belong to no client; then the role must have them. Rejects if the database cannot be reached.
 */
export const applySessionSettings = async (
  url: string,
  wanted: SessionSettings,
  { applicationName, timeoutMs }: { readonly applicationName: string; readonly timeoutMs: number },
): Promise<AppliedSettings> => {
  const check = async (parameters: SessionSettings): Promise<AppliedSettings> => {
    const sql = createDatabaseClient(url, {
      maxConnections: 1,
      applicationName,
      maxStatementMs: timeoutMs,
      session: parameters,
    })
    try {
      return { parameters, ...(await readMissing(sql, wanted, timeoutMs)) }
    } finally {
      await sql.end({ timeout: 0 })
    }
  }
  try {
    return await check(wanted)
  } catch (error) {
    if (!isRejected(error)) throw error
    return check({})
  }
}

/** The statements that give the missing settings to the role. */
export const toAlterRole = ({ role, missing }: Pick<AppliedSettings, 'role' | 'missing'>): string =>
  Object.entries(missing)
    .map(([name, value]) => `alter role "${role.replaceAll('"', '""')}" set ${name} = '${value}';`)
    .join(' ')

/** Every connection that the client opens from now on sends the parameters. Those of the URL take precedence. */
const setSessionParameters = (sql: Sql, parameters: SessionSettings): void => {
  const { connection } = sql.options
  Object.assign(connection, { ...parameters, ...connection })
}

/** A migration can rewrite a table. After twice this time without an answer its connection counts as lost. */
const MAX_MIGRATION_MS = 3_600_000

export interface PrepareDatabaseOptions {
  readonly url: string
  /** Names the URL in errors. */
  readonly urlVariable: string
  /** The clients of the service; each gets the settings. */
  readonly clients: readonly Sql[]
  /** Statements that may hang are executed on this one of them. */
  readonly probe: Sql
  /** Creates another client of the service. The name says what it is for. */
  readonly openPool: (name: string, maxConnections: number, options: Partial<DatabaseClientOptions>) => Sql
  readonly applicationName: string
  /** Milliseconds for each statement, but those of migrations. */
  readonly timeoutMs: number
  readonly schema: Schema
  readonly onMigration: Pick<MigrateOptions, 'onApplied' | 'onLocked'>
}

/**
 * What a service does before its first statement: gives its sessions their settings, checks that prepared statements work
 * through a pooler, and applies the pending migrations. Returns the statement that an operator must execute because a pooler
 * does not pass the settings on; empty if there is none.
 */
export const prepareDatabase = async ({
  url,
  urlVariable,
  clients,
  probe,
  openPool,
  applicationName,
  timeoutMs,
  schema,
  onMigration,
}: PrepareDatabaseOptions): Promise<string> => {
  const applied = await applySessionSettings(url, createSessionSettings(timeoutMs), { applicationName, timeoutMs })
  for (const client of clients) setSessionParameters(client, applied.parameters)
  if (probe.options.prepare) {
    await checkPreparedStatements(probe, { open: sessions => openPool('start', 1, { sessions }), urlVariable })
  }
  const migrationSql = openPool('migration', 1, { maxStatementMs: MAX_MIGRATION_MS })
  await migrate(migrationSql, schema, onMigration).finally(() => migrationSql.end({ timeout: 1 }))
  return toAlterRole(applied)
}

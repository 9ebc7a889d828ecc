import { setTimeout as wait } from 'node:timers/promises'
import postgres from 'postgres'
import { ConfigIssuesError } from '../service/env.ts'
import { type DatabaseClientOptions, pinSessions, type Sessions, type Sql, setSessionParameters } from './client.ts'
import { isDatabaseReadOnly, isDatabaseUnavailable } from './errors.ts'
import { type MigrateOptions, migrate, type Schema } from './migrations.ts'
import {
  applySessionSettings,
  createSessionSettings,
  findRejectedParameter,
  findUnusable,
  toAlterRole,
} from './session-settings.ts'
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

/** Completes a sentence that begins with the name of the variable. */
export const toRejectedParameterDetail = (parameter: string): string =>
  `has the parameter ${parameter} with a value, or with a name, that the server does not know; correct or remove it`

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

/** A server that answers can be reached. Each text has URL for the name of the variable. The first entry that fits applies. */
const ANSWERS: readonly (readonly [sqlState: RegExp, text: string])[] = [
  // PgBouncer reports a wrong user, password or database with the same code as a database that does not respond.
  [
    /^08P01/,
    'the connection pooler rejects the connection; check the user, the password and the name of the database in URL and in userlist.txt, whether the database responds, and the log of the pooler',
  ],
  [/^57014/, 'the server ended a statement; remove statement_timeout from the role and the database that URL names'],
  [
    /^42(?:P01|703|883)/,
    'the database lacks a table, a column or a function; restore it, or correct search_path of the role',
  ],
  [
    /^53[34]/,
    'the server has too many connections; raise max_connections, or the connection limit of the role and the database, or lower the pool sizes',
  ],
  [/^57P/, 'the server starts, stops or recovers, or ended the session; wait, or read its log'],
  [/^55000/, 'the database accepts no connections; execute alter database <database> allow_connections true'],
]

const explainAnswer = (code: string): string =>
  ANSWERS.find(([sqlState]) => sqlState.test(code))?.[1] ?? 'the server reports an error; read its log'

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
  const reason = isDatabaseReadOnly(error)
    ? 'the database accepts no writes; wait until it does, or name the primary in URL'
    : error instanceof postgres.PostgresError
      ? explainAnswer(code)
      : 'the database cannot be reached; start the server, or correct the host and the port in URL'
  return { isFinal: false, text: `${reason.replaceAll('URL', config.urlVariable)} (${code})` }
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

/** Only a pooler has process ids of its own. */
const isPooled = async (sql: Sql): Promise<boolean> => {
  const session = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`
  return session.state.pid !== session[0]?.pid
}

/**
 * Rejects with a `StartupError` if a connection pooler has a mode without transactions. It closes a connection that begins
 * one, sometimes without a reason, so this is tried again. `open` is as below.
 */
export const checkTransactions = async (
  sql: Sql,
  open: (sessions: Pick<Sessions, 'add'>) => Sql,
  triesLeft = 2,
): Promise<void> => {
  if (!(await isPooled(sql))) return
  const client = open({ add: () => {} })
  try {
    await withTimeout(client`select 1`, CHECK_TIMEOUT_MS)
    await withTimeout(client`begin`, CHECK_TIMEOUT_MS)
    await withTimeout(client`commit`, CHECK_TIMEOUT_MS)
  } catch (error) {
    if (!['08P01', 'CONNECTION_CLOSED', 'ECONNRESET'].includes(toCode(error))) throw error
    if (triesLeft > 1) return checkTransactions(sql, open, triesLeft - 1)
    throw new StartupError(
      'the connection pooler allows no transactions (pool_mode = statement); set pool_mode = transaction in pgbouncer.ini',
    )
  } finally {
    await client.end({ timeout: 0 })
  }
}

/**
 * Rejects with a `StartupError` if a connection pooler gives a prepared statement to a server connection that does not know
 * it. The driver repeats such a statement, but not reliably under load. `open` creates a client with one connection. A
 * pooler with a single server connection cannot be examined; its prepared statements work.
 */
export const checkPreparedStatements = async (
  sql: Sql,
  { open, urlVariable }: { readonly open: (sessions: Pick<Sessions, 'add'>) => Sql; readonly urlVariable: string },
): Promise<void> => {
  if (!(await isPooled(sql))) return
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
 * What a service does before its first statement: gives its sessions their settings, checks that transactions and prepared
 * statements work through a pooler, and applies the pending migrations. Returns the statement that an operator must execute
 * because a pooler does not pass the settings on; empty if there is none. Rejects if the service could not work.
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
  const applied = await applySessionSettings(url, createSessionSettings(timeoutMs), {
    applicationName,
    timeoutMs,
  }).catch((error: unknown) => {
    const parameter = findRejectedParameter(url, error)
    throw parameter === null
      ? error
      : new ConfigIssuesError([{ variable: urlVariable, detail: toRejectedParameterDetail(parameter) }])
  })
  const unusable = findUnusable(applied)
  if (unusable !== null) throw new StartupError(unusable)
  pinSessions(url, applied.basics)
  for (const client of clients) setSessionParameters(client, applied.parameters)
  await checkTransactions(probe, sessions => openPool('start', 1, { sessions }))
  if (probe.options.prepare) {
    await checkPreparedStatements(probe, { open: sessions => openPool('start', 1, { sessions }), urlVariable })
  }
  const migrationSql = openPool('migration', 1, { maxStatementMs: MAX_MIGRATION_MS })
  await migrate(migrationSql, schema, onMigration).finally(() => migrationSql.end({ timeout: 1 }))
  return toAlterRole(applied)
}

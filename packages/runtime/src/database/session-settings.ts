import postgres from 'postgres'
import { createDatabaseClient, type Sql } from './client.ts'
import { withTimeout } from './time.ts'

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
export const setSessionParameters = (sql: Sql, parameters: SessionSettings): void => {
  const { connection } = sql.options
  Object.assign(connection, { ...parameters, ...connection })
}

import postgres from 'postgres'
import { createDatabaseClient, type Sql, setSessionParameters } from './client.ts'
import { withTimeout } from './time.ts'

/** By name, as `show` prints the values. */
export type SessionSettings = Readonly<Record<string, string>>

interface ReliedOn {
  readonly value: string
  /** Other values that are as good. Absent: none. */
  readonly accepts?: (value: string) => boolean
  /**
   * Whether the service starts without it, with an error in the log. It concerns the work of clients that are gone. Without
   * any other one, results would be wrong or statements would fail.
   */
  readonly isOptional?: boolean
  /** The first version of Postgres that has it, if it is newer than the oldest supported one. */
  readonly since?: 17
}

/**
 * Everything that the statements of both services rely on and that a user may change: for a session, a role, a database or a
 * server. A client sends it when it connects, and then nothing but its own statements can change it.
 *
 * `lock_timeout` is for locks of whole tables: the statements of requests limit their waits for rows themselves.
 * `client_connection_check_interval` ends statements of clients that are gone.
 */
export const createSessionSettings = (maxStatementMs: number): Readonly<Record<string, ReliedOn>> => {
  const isOn = (value: string) => value !== '0'
  return {
    // Texts and times, in both directions.
    client_encoding: { value: 'UTF8' },
    DateStyle: { value: 'ISO, MDY', accepts: value => value.startsWith('ISO') },
    extra_float_digits: { value: '1', accepts: value => Number(value) >= 0 },
    standard_conforming_strings: { value: 'on' },
    // Conflicts wait for each other, and do not fail.
    default_transaction_isolation: { value: 'read committed' },
    // No statement and no session ends for another reason than those below.
    exit_on_error: { value: 'off' },
    statement_timeout: { value: '0' },
    transaction_timeout: { value: '0', since: 17 },
    idle_session_timeout: { value: '0' },
    client_connection_check_interval: { value: '2s', accepts: isOn, isOptional: true },
    lock_timeout: { value: `${maxStatementMs}ms`, accepts: isOn, isOptional: true },
    idle_in_transaction_session_timeout: { value: '60s', accepts: isOn, isOptional: true },
  }
}

/** PgBouncer sets these for each client. It rejects every other one. */
const POOLER_SETTINGS = ['client_encoding', 'DateStyle', 'standard_conforming_strings']

export interface AppliedSettings {
  /** What a client sends when it connects: as much as the server accepts. */
  readonly parameters: SessionSettings
  /** The part of it without which nothing works. */
  readonly basics: SessionSettings
  /** The wanted settings that the sessions do not have. */
  readonly missing: SessionSettings
  /** The names of those without which nothing works. */
  readonly required: readonly string[]
  /** The role that logs in, to which settings can be given. */
  readonly role: string
  /** Of the database. */
  readonly encoding: string
}

/** An unsupported startup parameter (PgBouncer); an unknown setting; a value that the platform does not support. */
const REJECTED_SQLSTATES = ['08P01', '42704', '22023']

const isRejected = (error: unknown): boolean =>
  error instanceof postgres.PostgresError && REJECTED_SQLSTATES.includes(error.code)

const readSession = async (sql: Sql, names: readonly string[], timeoutMs: number) => {
  const [row] = await withTimeout(
    sql<{ role: string; encoding: string; values: SessionSettings | null }[]>`
      select session_user as role, getdatabaseencoding() as encoding,
        (select json_object_agg(name, current_setting(name)) from pg_settings
          where name in (select jsonb_array_elements_text(${sql.json([...names])}))) as values`,
    timeoutMs,
  )
  if (!row) throw new Error('the session returned nothing about itself')
  return row
}

/**
 * Finds out whether sessions can have these settings. A connection pooler in transaction mode rejects most of them, because
 * its sessions belong to no client; then the role must have them. Rejects if the database cannot be reached.
 */
export const applySessionSettings = async (
  url: string,
  wanted: Readonly<Record<string, ReliedOn>>,
  { applicationName, timeoutMs }: { readonly applicationName: string; readonly timeoutMs: number },
): Promise<AppliedSettings> => {
  const all = Object.entries(wanted)
  const check = async (tried: readonly (readonly [string, ReliedOn])[]): Promise<AppliedSettings> => {
    const toValues = (settings: typeof tried) => Object.fromEntries(settings.map(([name, { value }]) => [name, value]))
    const parameters = toValues(tried)
    const sql = createDatabaseClient(url, { maxConnections: 1, applicationName, maxStatementMs: timeoutMs })
    setSessionParameters(sql, parameters)
    try {
      const { values, ...session } = await readSession(sql, Object.keys(wanted), timeoutMs)
      const missing = all.filter(([name, { value, accepts = (other: string) => other === value, isOptional }]) => {
        const current = values?.[name]
        return current === undefined ? isOptional : !accepts(current)
      })
      return {
        ...session,
        parameters,
        basics: toValues(tried.filter(([, { isOptional }]) => !isOptional)),
        missing: toValues(missing),
        required: missing.filter(([, { isOptional }]) => !isOptional).map(([name]) => name),
      }
    } finally {
      await sql.end({ timeout: 0 })
    }
  }
  const attempts = [
    all,
    all.filter(([, { since }]) => since === undefined),
    all.filter(([name]) => POOLER_SETTINGS.includes(name)),
  ]
  for (const tried of attempts) {
    try {
      return await check(tried)
    } catch (error) {
      if (!isRejected(error)) throw error
    }
  }
  return check([])
}

/** The statements that give the missing settings to the role. */
export const toAlterRole = ({ role, missing }: Pick<AppliedSettings, 'role' | 'missing'>): string =>
  Object.entries(missing)
    .map(([name, value]) => `alter role "${role.replaceAll('"', '""')}" set ${name} = '${value}';`)
    .join(' ')

/** What makes the database unusable, and what to do; null: nothing. */
export const findUnusable = (applied: AppliedSettings): string | null => {
  if (applied.encoding !== 'UTF8') {
    return `the database has the encoding ${applied.encoding}, which lacks characters; create another one with encoding 'UTF8' template template0, and restore a dump into it`
  }
  if (applied.required.length === 0) return null
  return `the connection pooler does not pass on ${applied.required.join(', ')}; execute ${toAlterRole(applied)} then restart the pooler, because it keeps sessions`
}

/**
 * The parameter of the connection string that the server does not accept; null: the error has another cause. The text of the
 * server names it in every language.
 */
export const findRejectedParameter = (url: string, error: unknown): string | null => {
  if (!isRejected(error)) return null
  const [, search = ''] = url.split('?')
  const words = String((error as Error).message).split(/[^\w.]+/)
  return [...new URLSearchParams(search).keys()].find(name => words.includes(name)) ?? null
}

import postgres from 'postgres'
import { isDatabaseReadOnly } from './errors.ts'

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

export const explainUnprepared = (urlVariable: string): string =>
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
      isFinal: true,
      text: `${(error as Error).message}; correct sslmode and sslrootcert in ${config.urlVariable}`,
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

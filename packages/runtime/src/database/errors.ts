import postgres from 'postgres'
import { TimeoutError } from './time.ts'

/**
 * SQLSTATE classes and codes (Postgres manual, appendix A) after which the same statement may succeed later. They include
 * a database that does not exist (3D000), failed authentication (class 28), a full or failing disk (classes 53, 58), and a
 * privilege, schema, table, column or function that was taken away (42501, 3F000, 42P01, 42703, 42883):
 * an operator can correct each of them without a change to the statement.
 */
const UNAVAILABLE_SQLSTATE =
  /^(?:08|25006|25P0[34]|28|3D000|3F000|40001|40P01|42501|42703|42883|42P01|53|55P03|57014|57P|58)/
/** The driver's own errors of a connection. Those of the socket are known by their origin. */
const UNAVAILABLE_DRIVER_CODE = /^CONNECT/
const CONNECTION_REJECTED_SQLSTATE = /^(?:28|3D000)/
/** A read-only transaction, as on a hot standby; a full disk. */
const READ_ONLY_SQLSTATE = /^(?:25006|53100)$/
/**
 * The server accepts no connection at the moment (57P03). This detail distinguishes a standby without hot standby from a
 * server that starts or recovers. A server that does not report in English is not distinguished.
 */
const CLOSED_STANDBY = { code: '57P03', detail: 'Hot standby mode is disabled.' }

/** The code of a connection error if no server of the connection string accepts writes. */
export const NO_WRITABLE_SERVER = 'CONNECT_NO_WRITABLE_SERVER'

/** Errors of a statement that the server has rolled back. */
const NOT_EXECUTED_SQLSTATE = /^(?:28|3D000|3F000|40001|40P01|42|53|55P03|57P03|57PD)/

/**
 * The errors of connections to a server, of any kind of address and with any code, and whether a session had begun.
 * Before it, no statement was sent.
 */
const connectionErrors = new WeakMap<Error, { readonly hadSession: boolean }>()

/** Records that a connection to the database failed with this error. The first call decides. Returns the error. */
export const toConnectionError = (error: Error, { hadSession }: { readonly hadSession: boolean }): Error => {
  if (!connectionErrors.has(error)) connectionErrors.set(error, { hadSession })
  return error
}

/** A write that certainly had no effect, and that may succeed later. */
export class NotWrittenError extends Error {
  override readonly name = 'NotWrittenError'
  /** That of the cause. */
  readonly code: unknown = Object(this.cause).code
}

/** Whether the statement certainly had no effect. After any other error of a connection that is unknown. */
export const isNotExecuted = (error: unknown): boolean => {
  if (!(error instanceof Error)) return false
  if (connectionErrors.get(error)?.hadSession === false) return true
  return error instanceof postgres.PostgresError && NOT_EXECUTED_SQLSTATE.test(error.code)
}

/**
 * Whether the statement may still execute: the connection to the server or behind a pooler was lost, and no error of the
 * server has ended the statement.
 */
export const mayStillExecute = (error: unknown): boolean =>
  isDatabaseUnavailable(error) &&
  !(error instanceof NotWrittenError) &&
  !isNotExecuted(error) &&
  !isDatabaseReadOnly(error) &&
  !(error instanceof postgres.PostgresError && !error.code.startsWith('08'))

/** Whether the server rejected the user or the database that the connection string names. */
export const isConnectionRejected = (error: unknown): boolean =>
  error instanceof postgres.PostgresError && CONNECTION_REJECTED_SQLSTATE.test(error.code)

/** Whether this SQLSTATE means that the server accepts no writes. */
export const isReadOnlyCode = (sqlState: string): boolean => READ_ONLY_SQLSTATE.test(sqlState)

/** Whether the database accepts no writes: it is read-only, a standby, or its disk is full. The statement had no effect. */
export const isDatabaseReadOnly = (error: unknown): boolean => {
  if (!(error instanceof postgres.PostgresError)) {
    return error instanceof Error && 'code' in error && error.code === NO_WRITABLE_SERVER
  }
  return isReadOnlyCode(error.code) || (error.code === CLOSED_STANDBY.code && error.detail === CLOSED_STANDBY.detail)
}

/** Whether the database is down, unreachable or overloaded. Any other error is a defect of the statement or of the caller. */
export const isDatabaseUnavailable = (error: unknown): boolean => {
  if (error instanceof TimeoutError || error instanceof NotWrittenError) return true
  if (!(error instanceof Error)) return false
  if (connectionErrors.has(error)) return true
  if (!('code' in error) || typeof error.code !== 'string') return false
  const codes = error instanceof postgres.PostgresError ? UNAVAILABLE_SQLSTATE : UNAVAILABLE_DRIVER_CODE
  return codes.test(error.code)
}

/** Whether the server rejected the statement itself: it had no effect, and a retry would fail in the same way. */
export const isStatementRejected = (error: unknown): boolean =>
  error instanceof postgres.PostgresError && !isDatabaseUnavailable(error)

/** Whether a row would be the second one with a key of this constraint or unique index. */
export const isUniqueViolation = (error: unknown, constraint: string): boolean =>
  error instanceof postgres.PostgresError && error.code === '23505' && error.constraint_name === constraint

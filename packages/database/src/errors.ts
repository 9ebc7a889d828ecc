import postgres from 'postgres'
import { TimeoutError } from './with-timeout.ts'

/**
 * SQLSTATE classes and codes (Postgres manual, appendix A) after which the same statement may succeed later. They include
 * a database that does not exist (3D000), failed authentication (class 28), and a full or failing disk (classes 53, 58):
 * an operator can correct each of them without a change to the statement.
 */
const UNAVAILABLE_SQLSTATE = /^(?:08|28|3D000|53|57P|57014|58|25006|40001|40P01|55P03)/
const UNAVAILABLE_SYSTEM_CODE =
  /^(?:CONNECT|ECONN|ENOTFOUND|EAI_|EPIPE|ETIMEDOUT|EHOSTUNREACH|EHOSTDOWN|ENETUNREACH|ENETDOWN|EADDRNOTAVAIL|ENOBUFS)/
const CONNECTION_REJECTED_SQLSTATE = /^(?:28|3D000)/

/** Whether the server rejected the user or the database that the connection string names. */
export const isConnectionRejected = (error: unknown): boolean =>
  error instanceof postgres.PostgresError && CONNECTION_REJECTED_SQLSTATE.test(error.code)

/** Whether the database is down, unreachable or overloaded. Any other error is a defect of the statement or of the caller. */
export const isDatabaseUnavailable = (error: unknown): boolean => {
  if (error instanceof TimeoutError) return true
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return false
  const codes = error instanceof postgres.PostgresError ? UNAVAILABLE_SQLSTATE : UNAVAILABLE_SYSTEM_CODE
  return codes.test(error.code)
}

/** Whether the server rejected the statement itself: it had no effect, and a retry would fail in the same way. */
export const isStatementRejected = (error: unknown): boolean =>
  error instanceof postgres.PostgresError && !isDatabaseUnavailable(error)

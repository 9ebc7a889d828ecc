import * as z from 'zod'
import { problem } from './allocation-problem.ts'
import type { validationProblem } from './credentials.ts'
import { poolDomain } from './fields.ts'
import type { ResponseSpec } from './operation.ts'

// Named types: a declaration that spells out every error code at every response is very large.
export interface ErrorResponse extends ResponseSpec {
  readonly schema: typeof problem
}
export interface ValidationErrorResponse extends ResponseSpec {
  readonly schema: typeof validationProblem
}

export const error = (description: string): ErrorResponse => ({ description, schema: problem })
export const fromOtherPage = '`forbidden`: a web page of another origin sent the request.'
/** Of every operation. */
export const commonErrors = {
  401: error('`unauthorized`: the operator listener requires an operator token.'),
  403: error(fromOtherPage),
  500: error('`internal-error`: a bug; the log has details under `requestId`.'),
} as const
export const operatorOnly = error('`not-found`: only the operator listener has this path.')
export const listsOnly = error('`not-found`: with `PDM_OPERATOR_ONLY_LIST`, only the operator listener has this path.')
export const databaseUnavailable = error(
  '`database-unavailable`: the database did not respond; the detail says whether a write had no effect, or whether that is unknown. `database-read-only`: it accepts no writes; the write had no effect.',
)
export const listUnavailable = error(
  '`too-many-readers`: too many lists are being read; retry after `Retry-After` seconds; or `database-unavailable`.',
)
export const invalidJson = error('`invalid-json`: the body is not JSON; or `invalid-idempotency-key`.')
export const tooLarge = error('`body-too-large`: the body is larger than 64 KiB.')

export const pool = z.object({ domain: poolDomain })

import { type DeploymentProblem, type ErrorCode, errors, type FieldFault } from '@pool/contract'
import type { Context } from 'hono'
import type { RequestContext } from './request-context.ts'
import type { HttpEnv } from './types.ts'

/** An error outcome of an operation. Its kind is the error code, which has a text for an outcome without `detail`. */
export interface ErrorOutcome {
  readonly kind: ErrorCode
  readonly detail?: string
  /** Every invalid field of a request. The first one provides the detail. */
  readonly faults?: readonly FieldFault[]
  /** RFC 3339. When any client can reserve a name that is in its cool-off. */
  readonly availableAt?: string
  /** Retry-After (RFC 9110 section 10.2.3). */
  readonly retryAfterSeconds?: number
}

/** Retry-After if no better value is known. */
export const RETRY_AFTER_S = 5

/** A browser asks for no password with this scheme (RFC 6750 section 3). */
export const OPERATOR_CHALLENGE = 'Bearer realm="operator"'

const toHeaders = ({ kind, retryAfterSeconds }: ErrorOutcome): Record<string, string> => ({
  // RFC 9110 section 11.6.1.
  ...(kind === 'unauthorized' && { 'WWW-Authenticate': OPERATOR_CHALLENGE }),
  // The rest of the body is not read, so the connection cannot be reused.
  ...(kind === 'body-too-large' && { Connection: 'close' }),
  ...(retryAfterSeconds !== undefined && { 'Retry-After': String(retryAfterSeconds) }),
})

const toBody = (
  { kind, detail, faults, availableAt }: ErrorOutcome,
  { requestId }: RequestContext,
): DeploymentProblem => {
  const [firstFault] = faults ?? []
  return {
    error: kind,
    detail: detail ?? firstFault?.detail ?? errors[kind][1],
    ...(faults && firstFault && { field: firstFault.field, faults: [...faults] }),
    ...(availableAt !== undefined && { availableAt }),
    ...(kind === 'internal-error' && { requestId }),
  }
}

/** The response to a request that does not reach the routes; also sets its outcome. */
export const createErrorResponse = (context: RequestContext, error: ErrorOutcome): Response => {
  context.outcome = error.kind
  return Response.json(toBody(error, context), { status: errors[error.kind][0], headers: toHeaders(error) })
}

/** Sends the error response. `toExtraFields` adds fields for operations whose clients read another error shape too. */
export const sendError = (
  c: Context<HttpEnv>,
  error: ErrorOutcome,
  toExtraFields: (detail: string) => object = () => ({}),
) => {
  c.env.outcome = error.kind
  for (const [name, value] of Object.entries(toHeaders(error))) c.header(name, value)
  const body = toBody(error, c.env)
  return c.json({ ...body, ...toExtraFields(body.detail ?? '') }, errors[error.kind][0])
}

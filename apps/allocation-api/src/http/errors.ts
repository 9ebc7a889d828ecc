import type { DeploymentProblem, ErrorCode, FieldFault } from '@pool/contract'
import type { Context } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { RequestContext } from './request-context.ts'
import type { HttpEnv } from './types.ts'

/** The only place that maps an outcome to a status. */
const STATUS_BY_CODE: Readonly<Record<ErrorCode, ContentfulStatusCode>> = {
  'invalid-json': 400,
  'invalid-idempotency-key': 400,
  'invalid-deployment': 400,
  'missing-region': 400,
  'invalid-region': 400,
  'invalid-access-key': 400,
  'invalid-secret-key': 400,
  'invalid-token': 400,
  'unsupported-provider': 400,
  unauthorized: 401,
  forbidden: 403,
  'token-mismatch': 403,
  'not-found': 404,
  'method-not-allowed': 405,
  conflict: 409,
  'cooling-off': 409,
  'subdomain-conflict': 409,
  'bucket-conflict': 409,
  'fqdn-conflict': 409,
  'fqdn-remains': 409,
  'domain-not-proven': 409,
  'in-progress': 409,
  'destroy-incomplete': 409,
  'still-up': 409,
  'plan-failed': 409,
  'lock-not-recorded': 409,
  'already-active': 409,
  'dns-writes-off': 409,
  'not-stopped': 409,
  'not-active': 409,
  'reservation-expired': 410,
  'not-empty': 409,
  'lease-changed': 409,
  'body-too-large': 413,
  'invalid-import': 422,
  'invalid-format': 422,
  'invalid-state': 422,
  'invalid-limit': 422,
  'invalid-cursor': 422,
  'invalid-fqdn': 422,
  'missing-token': 422,
  'missing-lb-ip': 422,
  'invalid-lb-ip': 422,
  'unsupported-pool': 422,
  'pool-draining': 422,
  reserved: 422,
  'idempotency-key-reused': 422,
  'too-many-attempts': 429,
  'internal-error': 500,
  'database-unavailable': 503,
  'database-read-only': 503,
  'dns-unavailable': 503,
  'provisioning-unavailable': 503,
  'object-storage-unavailable': 503,
  'provider-unavailable': 503,
  'too-many-readers': 503,
  'witness-unavailable': 503,
}

/** Texts for errors that come without one. Validation errors and naming errors bring their own. */
const DEFAULT_DETAILS: Readonly<Partial<Record<ErrorCode, string>>> = {
  'invalid-json': 'The body must be JSON in UTF-8.',
  unauthorized: 'Operator token required: send Authorization: Bearer <token>.',
  'token-mismatch': 'reservationToken does not match this allocation.',
  'not-found': 'No such allocation.',
  'method-not-allowed': 'Method not allowed; see the Allow header.',
  conflict: 'The name is taken; choose another name or wait until it is released.',
  'subdomain-conflict': 'The subdomain is taken; choose another one.',
  'bucket-conflict': 'The bucket derived from this FQDN belongs to another deployment; choose another name.',
  'fqdn-conflict': 'Another deployment has this FQDN; remove that deployment first or choose another name.',
  'in-progress': 'A run of this deployment is in progress, or it is being abandoned; wait for its end.',
  'destroy-incomplete': 'A destroy of this deployment failed; destroy it again before anything else.',
  'already-active': 'The name is already committed.',
  'dns-writes-off': 'PDM_DNS_WRITES=off is set; start the service without it, then resume.',
  'not-stopped': 'The zone is written; there is nothing to resume.',
  'not-active': 'The name is only reserved; commit it first.',
  'reservation-expired': 'The reservation has expired; reserve the name again.',
  'body-too-large': 'The body must not be larger than 64 KiB.',
  'idempotency-key-reused': 'This Idempotency-Key was already used with a different request; use a new key.',
  'too-many-readers': 'Too many lists are being read; retry later.',
  'internal-error': 'Internal error. Quote requestId when reporting it.',
  'database-unavailable':
    'The database did not respond. Whether a write took effect is unknown: read, or retry with an Idempotency-Key.',
  'database-read-only':
    'The database accepts no writes: it is read-only, a standby, or its disk is full. The write did not take effect; retry later.',
}

/** An error outcome of an operation. Its kind is the error code. */
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
    detail: detail ?? firstFault?.detail ?? DEFAULT_DETAILS[kind],
    ...(faults && firstFault && { field: firstFault.field, faults: [...faults] }),
    ...(availableAt !== undefined && { availableAt }),
    ...(kind === 'internal-error' && { requestId }),
  }
}

/** The response to a request that does not reach the routes; also sets its outcome. */
export const createErrorResponse = (context: RequestContext, error: ErrorOutcome): Response => {
  context.outcome = error.kind
  return Response.json(toBody(error, context), { status: STATUS_BY_CODE[error.kind], headers: toHeaders(error) })
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
  return c.json({ ...body, ...toExtraFields(body.detail ?? '') }, STATUS_BY_CODE[error.kind])
}

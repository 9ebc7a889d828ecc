import type { DeploymentProblem, ErrorCode, FieldFault } from '@pool/contract'
import type { Context } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { HttpEnv } from './types.ts'

/** The one place where an outcome becomes a status. */
const statuses: Readonly<Record<ErrorCode, ContentfulStatusCode>> = {
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
  'token-mismatch': 403,
  'not-found': 404,
  'method-not-allowed': 405,
  conflict: 409,
  'subdomain-conflict': 409,
  'bucket-conflict': 409,
  'fqdn-conflict': 409,
  'already-active': 409,
  'reservation-expired': 410,
  'body-too-large': 413,
  'invalid-format': 422,
  'invalid-state': 422,
  'invalid-limit': 422,
  'invalid-cursor': 422,
  'invalid-fqdn': 422,
  'missing-token': 422,
  'missing-lb-ip': 422,
  'invalid-lb-ip': 422,
  'unsupported-pool': 422,
  reserved: 422,
  'idempotency-key-reused': 422,
  'too-many-attempts': 429,
  'internal-error': 500,
  'database-unavailable': 503,
  'dns-unavailable': 503,
  'provisioning-unavailable': 503,
  'object-storage-unavailable': 503,
  'provider-unavailable': 503,
}

/** What is said of a refusal that comes without a detail of its own; faults of form and of names bring theirs. */
const details: Readonly<Partial<Record<ErrorCode, string>>> = {
  'invalid-json': 'The body must be JSON in UTF-8.',
  unauthorized: 'This address needs an operator token: Authorization: Bearer <token>.',
  'token-mismatch': 'reservationToken is not the one of this allocation.',
  'not-found': 'Nobody holds this name.',
  'method-not-allowed': 'This path has no such method; the Allow header names those it has.',
  conflict: 'The name is taken; choose another or wait until it is released.',
  'subdomain-conflict': 'The subdomain is taken; choose another.',
  'bucket-conflict': 'Another deployment has the bucket that this FQDN leads to; choose another name.',
  'fqdn-conflict': 'Another deployment has this FQDN; remove that one first or choose another name.',
  'already-active': 'The name has been committed already.',
  'reservation-expired': 'The time of the reservation is up; reserve the name again.',
  'body-too-large': 'The body must not be larger than 64 KiB.',
  'idempotency-key-reused': 'This Idempotency-Key came with another request before; use a new one.',
  'internal-error': 'Something failed on our side; the log has more under this requestId.',
  'database-unavailable':
    'The database did not answer. Whether a write took place is unknown: read, or retry with an Idempotency-Key.',
}

/** A refusal as its verb returns it: the kind is the code. */
export interface Refused {
  readonly kind: ErrorCode
  readonly detail?: string
  /** Of a request with many fields: all that are faulty; the first gives the detail. */
  readonly faults?: readonly FieldFault[]
  /** After which it is worth asking again (RFC 9110 section 10.2.3). */
  readonly retryAfterSeconds?: number
}

/** When nothing else is known. */
export const RETRY_AFTER_S = 5

/** `alike`: what else the body holds, for calls whose clients read another shape besides. */
export const problem = (
  c: Context<HttpEnv>,
  { kind, detail, faults, retryAfterSeconds }: Refused,
  alike: (detail: string) => object = () => ({}),
) => {
  c.set('outcome', kind)
  if (retryAfterSeconds !== undefined) c.header('Retry-After', String(retryAfterSeconds))
  const [first] = faults ?? []
  const body: DeploymentProblem = { error: kind, detail: detail ?? first?.detail ?? details[kind] }
  if (faults && first) Object.assign(body, { field: first.field, faults })
  if (kind === 'internal-error') body.requestId = c.get('requestId')
  return c.json({ ...body, ...alike(body.detail ?? '') }, statuses[kind])
}

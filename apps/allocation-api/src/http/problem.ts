import type { ErrorCode, Problem } from '@pool/contract'
import type { Context } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { HttpEnv } from './env.ts'

interface Answer {
  readonly status: ContentfulStatusCode
  /** Said when whoever refuses has nothing more exact to say. */
  readonly detail: string
}

/** The one place where an outcome becomes a status. */
const answers: Readonly<Record<ErrorCode, Answer>> = {
  'invalid-json': { status: 400, detail: 'The body must be JSON in UTF-8.' },
  'invalid-idempotency-key': { status: 400, detail: 'Idempotency-Key must be 1 to 255 visible ASCII characters.' },
  unauthorized: { status: 401, detail: 'This address needs an operator token: Authorization: Bearer <token>.' },
  'token-mismatch': { status: 403, detail: 'reservationToken is not the one of this allocation.' },
  'not-found': { status: 404, detail: 'Nobody holds this name.' },
  'method-not-allowed': { status: 405, detail: 'This path has no such method; the Allow header names those it has.' },
  conflict: { status: 409, detail: 'The name is taken; choose another or wait until it is released.' },
  'already-active': { status: 409, detail: 'The name has been committed already.' },
  'reservation-expired': { status: 410, detail: 'The time of the reservation is up; reserve the name again.' },
  'body-too-large': { status: 413, detail: 'The body must not be larger than 64 KiB.' },
  'invalid-format': { status: 422, detail: 'The request does not have the documented shape.' },
  'invalid-state': { status: 422, detail: 'state must be "reserved" or "active".' },
  'invalid-limit': { status: 422, detail: 'limit must be a whole number from 1.' },
  'invalid-cursor': { status: 422, detail: 'cursor must be the nextCursor of an earlier answer.' },
  'invalid-fqdn': { status: 422, detail: 'sovereignFQDN must be a fully qualified domain name.' },
  'missing-token': { status: 422, detail: 'reservationToken is required.' },
  'missing-lb-ip': { status: 422, detail: 'loadBalancerIP is required.' },
  'invalid-lb-ip': { status: 422, detail: 'loadBalancerIP must be a unicast IPv4 address.' },
  'unsupported-pool': { status: 422, detail: 'This service does not manage that pool.' },
  reserved: { status: 422, detail: 'The label is reserved and cannot be given to a tenant.' },
  'idempotency-key-reused': {
    status: 422,
    detail: 'This Idempotency-Key came with another request before; use a new one.',
  },
  'internal-error': { status: 500, detail: 'Something failed on our side; the log has more under this requestId.' },
  'database-unavailable': {
    status: 503,
    detail:
      'The database did not answer. Whether a write took place is unknown: read, or retry with an Idempotency-Key.',
  },
}

/** A refusal as its verb returns it: the kind is the code. */
export interface Refused {
  readonly kind: ErrorCode
  readonly detail?: string
}

export const problem = (c: Context<HttpEnv>, { kind, detail }: Refused) => {
  c.set('outcome', kind)
  const answer = answers[kind]
  const body: Problem = { error: kind, detail: detail ?? answer.detail }
  if (kind === 'internal-error') body.requestId = c.get('requestId')
  return c.json(body, answer.status)
}

import type { LeaseErrorCode, LeaseProblem } from '@pool/contract/lease-problem'
import type { Context } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Unavailable } from '../lease-service.ts'
import type { HttpEnv } from './types.ts'

/** The one place where an outcome becomes a status. */
const statuses: Readonly<Record<LeaseErrorCode, ContentfulStatusCode>> = {
  'invalid-request': 400,
  'invalid-json': 400,
  'invalid-slot': 400,
  'invalid-limit': 400,
  'invalid-cursor': 400,
  'invalid-prefix': 400,
  'missing-if-match': 400,
  'invalid-if-match': 400,
  'invalid-if-none-match': 400,
  'missing-x-holder': 400,
  'invalid-holder': 400,
  'holder-mismatch': 400,
  'invalid-ttl': 400,
  'invalid-op': 400,
  unauthorized: 401,
  'not-found': 404,
  'method-not-allowed': 405,
  'body-too-large': 413,
  'internal-error': 500,
  overloaded: 503,
  'lease-unavailable': 503,
  'copy-unavailable': 503,
  'invalid-lease-record': 503,
}

const details: Readonly<Partial<Record<LeaseErrorCode, string>>> = {
  'invalid-json': 'The body must be JSON in UTF-8, or absent.',
  'invalid-slot': 'The slot must be 1 to 506 bytes of UTF-8, percent-encoded where a path needs it.',
  'missing-if-match': 'If-Match is required: the generation that you last saw, 0 for a slot that was never written.',
  'invalid-if-match': 'If-Match must be one generation: 7, "7" or W/"7".',
  'invalid-if-none-match': 'If-None-Match on a write can only be *, which says the same as If-Match: 0.',
  'missing-x-holder': 'X-Holder is required: only the holder releases a lease.',
  'holder-mismatch': 'X-Holder and the holder of the body differ; send one of them.',
  'not-found': 'There is no such path.',
  'method-not-allowed': 'This path has no such method; the Allow header names those it has.',
  'body-too-large': 'The body must not be larger than 64 KiB.',
  'internal-error': 'Something failed on our side; the log has more under this requestId.',
  overloaded: 'This slot has more to do than it can. Wait; after a write, read the lease and compare before you retry.',
  'lease-unavailable': 'This slot cannot answer now. After a write, read the lease and compare before you retry.',
  'copy-unavailable': 'Workers KV did not answer. Leases are not affected: ask for a single one.',
}

/** Seconds. Restarts of an object and bursts pass in less. */
const RETRY_AFTER = '1'

export interface Refused {
  readonly kind: LeaseErrorCode
  readonly detail?: string
}

export const problem = (c: Context<HttpEnv>, { kind, detail = details[kind] }: Refused) => {
  c.set('outcome', kind)
  const status = statuses[kind]
  if (status === 503) c.header('Retry-After', RETRY_AFTER)
  const body: LeaseProblem = { error: kind }
  if (detail !== undefined) body.detail = detail
  if (kind === 'internal-error') body.requestId = c.get('requestId')
  return c.json(body, status)
}

/** What the witness could not decide, as its refusal. */
export const unavailable = (c: Context<HttpEnv>, outcome: Unavailable) =>
  outcome.kind === 'invalid-lease-record'
    ? problem(c, {
        kind: outcome.kind,
        detail: `Workers KV holds a record at ${outcome.key} that is no lease: repair it, or delete it if no token of it is in use.`,
      })
    : problem(c, outcome)

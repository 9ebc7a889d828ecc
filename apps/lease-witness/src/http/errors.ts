import type { LeaseErrorCode, LeaseProblem } from '@pool/contract/lease-problem'
import type { Context } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { RequestError } from '../lease/request.ts'
import type { SlotUnavailable } from '../lease-service.ts'
import { log, type WitnessLogLevel } from '../log.ts'
import type { WitnessHttpEnv } from './types.ts'

/** The only place that maps an error code to a status. */
const STATUS: Readonly<Record<LeaseErrorCode, ContentfulStatusCode>> = {
  'invalid-request': 400,
  'invalid-json': 400,
  'invalid-slot': 400,
  'invalid-until': 400,
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
  'invalid-leases': 400,
  'invalid-generation': 400,
  unauthorized: 401,
  forbidden: 403,
  'not-found': 404,
  'method-not-allowed': 405,
  'body-too-large': 413,
  'too-many-requests': 429,
  'internal-error': 500,
  overloaded: 503,
  'lease-unavailable': 503,
  'copy-unavailable': 503,
  draining: 503,
  'not-draining': 409,
  'invalid-lease-record': 503,
}

const DETAIL: Readonly<Partial<Record<LeaseErrorCode, string>>> = {
  'invalid-json': 'The body must be JSON in UTF-8, or empty.',
  'invalid-slot':
    'The slot must be 1 to 506 bytes of UTF-8, percent-encoded in the path. Encode the slashes of an empty segment as %2F.',
  'missing-if-match': 'If-Match is required. Send the generation that you last saw, or 0 for a slot without a lease.',
  'invalid-if-match': 'If-Match must be one generation: 7, "7" or W/"7".',
  'invalid-if-none-match': 'On a write, If-None-Match must be *, which means the same as If-Match: 0.',
  'missing-x-holder': 'X-Holder is required: only the holder can release a lease.',
  'holder-mismatch': 'X-Holder and the holder in the body differ. Send only one of them.',
  forbidden: 'The policy of this token does not permit this request.',
  'not-found': 'This path does not exist.',
  'method-not-allowed': 'This path does not support the method. The Allow header lists the supported methods.',
  'body-too-large': 'The body must not be larger than 64 KiB.',
  'too-many-requests': 'This token has used up its requests per minute. Retry after the time in Retry-After.',
  'internal-error': 'An unexpected error occurred. The log has its details under this requestId.',
  overloaded: 'This slot is overloaded. Retry later; after a write, first read the lease and compare.',
  'lease-unavailable':
    'This slot is temporarily unavailable. After a write, read the lease and compare before a retry.',
  draining: 'The leases are being moved to another system: no write is accepted. Use the address of that system.',
  'not-draining': 'The witness accepts writes. Deploy it with DRAIN=true first.',
  'copy-unavailable': 'Workers KV did not respond. Leases are not affected: read a single lease instead.',
}

/** From `min` seconds on, at random, so that clients whose waits end at the same time do not all retry in the same second. */
const RETRY_AFTER = { min: 1, spread: 5 } as const
/** Only a person can repair a record. */
const RETRY_AFTER_REPAIR = { min: 60, spread: 60 } as const

const pickRetryAfter = (code: LeaseErrorCode): string => {
  const { min, spread } = code === 'invalid-lease-record' ? RETRY_AFTER_REPAIR : RETRY_AFTER
  return String(min + Math.floor(Math.random() * spread))
}

export const errorResponse = (c: Context<WitnessHttpEnv>, { code, detail = DETAIL[code] }: RequestError) => {
  c.set('outcome', code)
  const status = STATUS[code]
  if (status === 503) c.header('Retry-After', pickRetryAfter(code))
  const body: LeaseProblem = { error: code }
  if (detail !== undefined) body.detail = detail
  if (code === 'internal-error') body.requestId = c.get('requestId')
  return c.json(body, status)
}

/** The token does not permit the request (RFC 6750 section 3.1). */
export const forbiddenResponse = (c: Context<WitnessHttpEnv>) => {
  c.header('WWW-Authenticate', 'Bearer error="insufficient_scope"')
  return errorResponse(c, { code: 'forbidden' })
}

export const neverWrittenResponse = (c: Context<WitnessHttpEnv>) =>
  errorResponse(c, { code: 'not-found', detail: 'This slot was never written.' })

/** Writes a line about a request, without its credentials. */
export const logRequest = (
  c: Context<WitnessHttpEnv>,
  level: WitnessLogLevel,
  fields: Readonly<Record<string, unknown>>,
): void => log(c.get('settings'), level, fields, c.get('secrets'))

/** Logs why a dependency failed. The client gets a 503 without that text. */
export const logUnavailable = (
  c: Context<WitnessHttpEnv>,
  msg: 'object-unavailable' | 'copy-unavailable',
  reason: string,
  slot = c.get('slot'),
): void => logRequest(c, 'error', { msg, requestId: c.get('requestId'), slot, reason })

/** Logs an outcome that has the error text of a dependency. */
export const logSlotUnavailable = (
  c: Context<WitnessHttpEnv>,
  outcome: { readonly kind: string } | SlotUnavailable,
  slot?: string,
): void => {
  if (outcome.kind !== 'rejected' && 'reason' in outcome && outcome.reason !== undefined)
    logUnavailable(c, 'object-unavailable', outcome.reason, slot)
}

/** Logs a bug. */
export const logUnexpected = (c: Context<WitnessHttpEnv>, error: unknown, slot = c.get('slot')): void => {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
  const fields = { requestId: c.get('requestId'), slot, error: { name, message, stack } }
  logRequest(c, 'error', { msg: 'unhandled-error', ...fields })
}

export const unavailableResponse = (c: Context<WitnessHttpEnv>, outcome: SlotUnavailable) => {
  if (outcome.kind === 'invalid-lease-record') {
    const detail = `The record in Workers KV at ${outcome.key} is not a lease. Repair it, or delete it if no fencing token of it is in use.`
    return errorResponse(c, { code: outcome.kind, detail })
  }
  logSlotUnavailable(c, outcome)
  return errorResponse(c, { code: outcome.kind })
}

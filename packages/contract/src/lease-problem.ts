import * as z from 'zod'
import { createProblemSchema, createRules, defineErrors, listCodes } from './problem.ts'

/** The `detail` of the 404 of a slot that was never written. No other 404 has it, so that clients compare it: never change it. */
export const NEVER_WRITTEN = 'This slot was never written.'

/** Every error of the lease witness. The body of a 412 is not an error but the current lease. */
export const leaseErrors = defineErrors({
  'invalid-json': [400, 'The body must be JSON in UTF-8, or empty.'],
  'invalid-limit': [400, 'limit must be a whole number in the documented range.'],
  'invalid-cursor': [400, 'cursor must be the nextCursor of an earlier response.'],
  unauthorized: [401, 'The token is missing, unknown or expired.'],
  'not-found': [404, 'This path does not exist.'],
  'method-not-allowed': [405, 'This path does not support the method. The Allow header lists the supported methods.'],
  'request-timeout': [408, 'The body did not arrive within 10 s. Send the request again.'],
  'body-too-large': [413, 'The body must not be larger than 64 KiB.'],
  'unsupported-encoding': [415, 'The body must have no Content-Encoding.'],
  'internal-error': [500, 'An unexpected error occurred. The log has its details under this requestId.'],
  forbidden: [403, 'The policy of this token does not permit this request.'],
  'too-many-requests': [429, 'This token has used up its requests per minute. Retry after the time in Retry-After.'],
  'invalid-request': [400, 'The request body was truncated, or fields of the request exclude each other.'],
  'invalid-slot': [
    400,
    'The slot must be 1 to 506 bytes of UTF-8, percent-encoded in the path. Encode the slashes of an empty segment as %2F.',
  ],
  'invalid-until': [400, 'until must be vacant.'],
  'unknown-parameter': [422, 'The query has a parameter that this request does not take.'],
  'invalid-prefix': [400, 'prefix must be the start of a slot.'],
  'missing-if-match': [
    400,
    'If-Match is required. Send the generation that you last saw, or 0 for a slot without a lease.',
  ],
  'invalid-if-match': [400, 'If-Match must be one generation: 7, "7" or W/"7".'],
  'invalid-if-none-match': [400, 'On a write, If-None-Match must be *, which means the same as If-Match: 0.'],
  'missing-x-holder': [400, 'X-Holder is required: only the holder can release a lease.'],
  'invalid-holder': [400, 'The holder must be 1 to 253 printable ASCII characters without a space at either end.'],
  'holder-mismatch': [400, 'X-Holder and the holder in the body differ. Send only one of them.'],
  'invalid-ttl': [400, 'ttlSeconds must be a number from 1 to 86400.'],
  'invalid-op': [400, 'op must be acquire or renew.'],
  'invalid-value': [400, 'value must be text of at most 1024 bytes in UTF-8, without control characters.'],
  'invalid-leases': [400, 'leases must be 1 to 100 different slots with their generations.'],
  'invalid-generation': [400, 'generation must be a whole number.'],
  'invalid-lease-record': [503, 'The record of the slot in Workers KV is not a lease.'],
  overloaded: [503, 'This slot is overloaded. Retry later; after a write, first read the lease and compare.'],
  'lease-unavailable': [
    503,
    'This slot is temporarily unavailable. After a write, read the lease and compare before a retry.',
  ],
  'copy-unavailable': [
    503,
    'The list cannot be read: Workers KV, or the database of a witness on Postgres, did not respond.',
  ],
  draining: [
    503,
    'The leases are being moved to another system: no write is accepted. Use the address of that system.',
  ],
  'not-draining': [409, 'The witness accepts writes. Deploy it with DRAIN=true first.'],
})

export type LeaseErrorCode = keyof typeof leaseErrors
export const leaseErrorCodes = listCodes(leaseErrors)
export const leaseErrorCode = z.enum(leaseErrorCodes).meta({ id: 'LeaseErrorCode' })

export const leaseProblem = createProblemSchema(leaseErrorCode).meta({ id: 'LeaseProblem' })
export type LeaseProblem = z.infer<typeof leaseProblem>

export const { rule: leaseRule, firstViolation: firstLeaseViolation } = createRules(leaseErrorCodes, 'invalid-request')

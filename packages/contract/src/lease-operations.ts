import * as z from 'zod'
import { probe } from './health.ts'
import {
  drainLeasesRequest,
  drainLeasesResponse,
  GENERATION_TAG,
  holder,
  holderOrEmpty,
  lease,
  leaseHistory,
  leaseList,
  leaseListQuery,
  leaseStatusList,
  leaseStatusQuery,
  putLeaseRequest,
  readLeaseQuery,
  renewLeasesRequest,
  renewLeasesResponse,
  slot,
} from './lease.ts'
import { leaseProblem } from './lease-problem.ts'
import type { Operation, ResponseSpec } from './operation.ts'

const etag = { ETag: 'The generation as an entity tag, `"7"`.' }
const remaining = {
  'Lease-Remaining-Ms':
    'Milliseconds until the lease expires, when the witness sent the response; `0`: it has expired. Absent: no client holds it.',
}
const conflict = {
  'Lease-Conflict':
    '`generation`: the current generation differs. `held`: another holder has an unexpired lease. `not-holder`: another holder has the lease, or none. `expired`: the lease to renew has expired.',
}
const retryAfter = { 'Retry-After': 'Seconds after which to retry, with a random part.' }
const preferenceApplied = {
  'Preference-Applied': 'The wait that was granted, `wait=25`; only in the response to a read that could wait.',
}

// Named types: a declaration spells out every other schema.
interface ErrorResponse extends ResponseSpec {
  readonly schema: typeof leaseProblem
}
interface LeaseResponse extends ResponseSpec {
  readonly schema: typeof lease
}

const error = (description: string, headers?: ResponseSpec['headers']): ErrorResponse => ({
  description,
  schema: leaseProblem,
  ...(headers ? { headers } : {}),
})
const unauthorized = {
  description: '`unauthorized`: the token is missing, unknown or expired. The body has no detail.',
  schema: z.object({ error: z.literal('unauthorized') }).meta({ id: 'Unauthorized' }),
  headers: { 'WWW-Authenticate': '`Bearer`; with a token, also `error="invalid_token"`.' },
} satisfies ResponseSpec
const tooLarge = error(
  '`body-too-large`: the body is larger than 64 KiB, with any method. An endless body closes the connection.',
)
const internalError = error('`internal-error`: a bug; the log has details under `requestId`.')
const unavailable = error(
  '`overloaded`, `lease-unavailable` or `invalid-lease-record`: the slot could not process the request; whether a write took effect is unknown. `draining`: no write is accepted.',
  retryAfter,
)
const forbidden = error('`forbidden`: the policy of the token does not permit the request.', {
  'WWW-Authenticate': '`Bearer error="insufficient_scope"`',
})
const tooMany = error('`too-many-requests`: the token has used up its requests per minute.', retryAfter)
const commonErrors = { 401: unauthorized, 403: forbidden, 413: tooLarge, 429: tooMany, 500: internalError }
const truncated = '`invalid-request`: the request body was truncated'
const neverWritten: ErrorResponse = {
  description: '`not-found`: the slot was never written.',
  schema: leaseProblem,
}
const current: LeaseResponse = {
  description: 'Not written: the current lease.',
  schema: lease,
  headers: { ...etag, ...remaining, ...conflict },
}

const sameSlot = { 'path.slot': '$request.path.slot' }
const sameGeneration = { ...sameSlot, 'header.If-Match': '$response.header.ETag' }
/** What a client does next with a lease: the entity tag of the response is the `If-Match` of the next write. */
const leaseLinks = {
  renew: {
    operationId: 'writeLease',
    parameters: sameGeneration,
    requestBody: { holder: '$response.body#/holder', op: 'renew' },
  },
  release: {
    operationId: 'releaseLease',
    parameters: { ...sameGeneration, 'header.X-Holder': '$response.body#/holder' },
  },
  wait: {
    operationId: 'readLease',
    parameters: { ...sameSlot, 'header.If-None-Match': '$response.header.ETag' },
  },
  history: { operationId: 'readLeaseHistory', parameters: sameSlot },
} as const
const acquireLink = { acquire: { operationId: 'writeLease', parameters: sameGeneration } } as const

const path = z.object({ slot })
/** OPTIONS does not validate the slot. */
const anySlotPath = z.object({ slot: z.string() })
const ifMatch = z.string().regex(GENERATION_TAG).meta({
  description: 'The last known generation: `7`, `"7"` or `W/"7"`; `0` for a slot that was never written.',
  example: '0',
})
const leaseSlot = z.string().optional().meta({ description: 'Written to the log; it has no other effect.' })
const preflight = (allow: string): ResponseSpec => ({
  description: 'The methods of the resource.',
  headers: { Allow: `\`${allow}\`` },
})

/**
 * The operations of the lease witness. HEAD is GET without a body. Other methods of these paths are 405
 * `method-not-allowed` with `Allow`; other paths are 404 `not-found`.
 */
export const leaseOperations = [
  {
    id: 'readLease',
    method: 'get',
    path: '/lease/{slot}',
    tag: 'Lease',
    summary: 'Returns the lease, even if it is expired or released.',
    description:
      'The slot is the rest of the path after `/lease/`, percent-decoded once: `a/b`, `a%2Fb` and `a%2fb` are one slot. An empty segment must be encoded: `a%2F%2Fb`. With `If-None-Match` and `Prefer: wait=N`, the response is sent when the generation changes or the lease expires; with `until=vacant` or `If-None-Match: *`, when the lease is released or expires, but not when it is renewed; in each case at the latest after N seconds. A read with `If-Match` does not wait.',
    pathParams: path,
    query: readLeaseQuery,
    headers: z.object({
      'If-Match': z
        .string()
        .optional()
        .meta({ description: 'A list of entity tags, or `*` (RFC 9110 section 13.1.1).', example: '"7"' }),
      'If-None-Match': z
        .string()
        .optional()
        .meta({ description: 'Known generations: a list of entity tags, or `*`.', example: '"7"' }),
      Prefer: z.string().optional().meta({
        description:
          '`wait=N` in seconds (RFC 7240 section 4.3), limited to MAX_WAIT_SECONDS of the witness: 25 by default, at most 60.',
        example: 'wait=25',
      }),
      'X-Lease-Slot': leaseSlot,
    }),
    responses: {
      200: {
        links: { ...leaseLinks, ...acquireLink },
        description: 'The lease.',
        schema: lease,
        headers: { ...etag, ...remaining, ...preferenceApplied },
      },
      304: { description: 'The client knows the current generation.', headers: { ...etag, ...preferenceApplied } },
      400: error(`\`invalid-slot\`, \`invalid-until\`; or ${truncated}.`),
      404: { ...neverWritten, headers: preferenceApplied },
      412: { ...current, description: '`If-Match` does not match: the current lease.' },
      503: unavailable,
      ...commonErrors,
    },
  },
  {
    id: 'writeLease',
    method: 'put',
    path: '/lease/{slot}',
    tag: 'Lease',
    summary: 'Acquires or renews the lease by compare-and-set.',
    pathParams: path,
    headers: z.object({
      'If-Match': ifMatch.optional(),
      'If-None-Match': z
        .enum(['*'])
        .optional()
        .meta({ description: '`*` is equivalent to `If-Match: 0`; one of the two is required.' }),
      'X-Holder': holderOrEmpty.optional().meta({
        description: 'The holder, instead of the field in the body. Empty means absent.',
        example: 'region-a/controller-0',
      }),
      'X-Lease-Slot': leaseSlot,
    }),
    body: { schema: putLeaseRequest, required: false },
    responses: {
      200: {
        links: leaseLinks,
        description: 'Granted: the new lease.',
        schema: lease,
        headers: { ...etag, ...remaining },
      },
      400: error(
        `\`invalid-slot\`, \`missing-if-match\`, \`invalid-if-match\`, \`invalid-if-none-match\`, \`invalid-json\`, \`invalid-holder\`, \`holder-mismatch\`, \`invalid-ttl\`, \`invalid-op\`; or ${truncated}.`,
      ),
      412: { ...current, links: acquireLink },
      503: unavailable,
      ...commonErrors,
    },
  },
  {
    id: 'releaseLease',
    method: 'delete',
    path: '/lease/{slot}',
    tag: 'Lease',
    summary: 'Releases the lease. Only its holder can release it.',
    pathParams: path,
    headers: z.object({ 'If-Match': ifMatch, 'X-Holder': holder, 'X-Lease-Slot': leaseSlot }),
    responses: {
      204: { description: 'Released, or there was nothing to release; then without `ETag`.', headers: etag },
      400: error(
        `\`invalid-slot\`, \`missing-if-match\`, \`invalid-if-match\`, \`invalid-if-none-match\`, \`missing-x-holder\`, \`invalid-holder\`; or ${truncated}.`,
      ),
      412: current,
      503: unavailable,
      ...commonErrors,
    },
  },
  {
    id: 'getLeaseMethods',
    method: 'options',
    path: '/lease/{slot}',
    tag: 'Lease',
    summary: 'The methods of a lease; needs no token.',
    pathParams: anySlotPath,
    responses: { 204: preflight('GET, HEAD, PUT, DELETE, OPTIONS'), 500: internalError },
    isPublic: true,
  },
  {
    id: 'readLeaseHistory',
    method: 'get',
    path: '/history/{slot}',
    tag: 'Lease',
    summary: 'Lists the last changes of holder, newest first.',
    pathParams: path,
    responses: {
      200: { description: 'The transitions.', schema: leaseHistory },
      400: error(`\`invalid-slot\`; or ${truncated}.`),
      404: neverWritten,
      503: unavailable,
      ...commonErrors,
    },
  },
  {
    id: 'getLeaseHistoryMethods',
    method: 'options',
    path: '/history/{slot}',
    tag: 'Lease',
    summary: 'The methods of a history; needs no token.',
    pathParams: anySlotPath,
    responses: { 204: preflight('GET, HEAD, OPTIONS'), 500: internalError },
    isPublic: true,
  },
  {
    id: 'listLeases',
    method: 'get',
    path: '/leases',
    tag: 'Copies',
    summary: 'Lists leases from an eventually consistent copy, or exactly the leases of named slots.',
    description:
      'With `slot`, which can be repeated, the response is exact and has the number of waiting clients: each slot is read as `GET /lease/{slot}` would. Without it, the leases come from a copy that lags.',
    query: leaseListQuery.extend(leaseStatusQuery.partial().shape),
    responses: {
      200: {
        description: 'A page of leases, by slot; or the leases of the named slots, in their order.',
        schema: z.discriminatedUnion('consistency', [leaseList, leaseStatusList]).meta({ id: 'LeaseListResponse' }),
      },
      400: error(
        `\`invalid-slot\`, \`invalid-prefix\`, \`invalid-limit\`, \`invalid-cursor\`; \`invalid-request\`: slot with prefix, limit or cursor; or ${truncated}.`,
      ),
      503: error('`copy-unavailable`: Workers KV did not respond. Leases are not affected.', retryAfter),
      ...commonErrors,
    },
  },
  {
    id: 'getLeaseListMethods',
    method: 'options',
    path: '/leases',
    tag: 'Copies',
    summary: 'The methods of the list; needs no token.',
    responses: { 204: preflight('GET, HEAD, OPTIONS'), 500: internalError },
    isPublic: true,
  },
  {
    id: 'renewLeases',
    method: 'post',
    path: '/leases/renew',
    tag: 'Lease',
    summary: 'Renews up to 100 leases of one holder.',
    description:
      'Each lease is decided alone, as `PUT /lease/{slot}` with `op: "renew"` would be: one that cannot be renewed does not affect the others. If no response arrives, each of them may or may not be renewed.',
    body: { schema: renewLeasesRequest, required: true },
    responses: {
      200: { description: 'A result for each lease, in the order of the request.', schema: renewLeasesResponse },
      400: error(
        `\`invalid-json\`, \`invalid-holder\`, \`invalid-leases\`, \`invalid-slot\`, \`invalid-generation\`, \`invalid-ttl\`; or ${truncated}.`,
      ),
      ...commonErrors,
    },
  },
  {
    id: 'drainLeases',
    method: 'post',
    path: '/leases/drain',
    tag: 'Copies',
    summary: 'Brings the copies up to date before the leases move to a system that keeps them in Workers KV.',
    description:
      'For operators, with a token of full power. Only on Cloudflare, and only while the variable DRAIN is `true`. Repeat it with `nextCursor`, and later for the slots in `pending`.',
    body: { schema: drainLeasesRequest, required: false },
    responses: {
      200: { description: 'What was drained, and what was not.', schema: drainLeasesResponse },
      400: error(
        `\`invalid-json\`, \`invalid-slot\`, \`invalid-cursor\`; \`invalid-request\`: objects is not a list of ids; or ${truncated}.`,
      ),
      409: error('`not-draining`: the witness accepts writes. Deploy it with `DRAIN=true` first.'),
      503: error('`copy-unavailable`: Workers KV did not respond.', retryAfter),
      ...commonErrors,
    },
  },
  {
    id: 'getDrainMethods',
    method: 'options',
    path: '/leases/drain',
    tag: 'Copies',
    summary: 'The methods of the drain; needs no token.',
    responses: { 204: preflight('POST, OPTIONS'), 500: internalError },
    isPublic: true,
  },
  {
    id: 'getRenewalMethods',
    method: 'options',
    path: '/leases/renew',
    tag: 'Lease',
    summary: 'The methods of a renewal; needs no token.',
    responses: { 204: preflight('POST, OPTIONS'), 500: internalError },
    isPublic: true,
  },
  {
    id: 'getHealth',
    method: 'get',
    path: '/healthz',
    tag: 'Health',
    summary: 'Reports whether the witness can respond; needs no token.',
    responses: {
      200: { description: 'The worker and an object respond.', schema: probe },
      500: internalError,
      503: { description: 'No object responds.', schema: probe },
    },
    isPublic: true,
  },
  {
    id: 'getHealthMethods',
    method: 'options',
    path: '/healthz',
    tag: 'Health',
    summary: 'The methods of the health check; needs no token.',
    responses: { 204: preflight('GET, HEAD, OPTIONS'), 500: internalError },
    isPublic: true,
  },
] as const satisfies readonly Operation[]

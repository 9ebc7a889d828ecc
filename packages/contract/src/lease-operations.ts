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
import { type LeaseErrorCode, leaseErrors, leaseProblem } from './lease-problem.ts'
import {
  del,
  type ErrorForm,
  get,
  type OperationSpec,
  type Operations,
  options,
  post,
  put,
  toErrorResponses,
} from './operation.ts'

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

const unauthorized = z.object({ error: z.literal('unauthorized') }).meta({ id: 'Unauthorized' })
const errorForm: ErrorForm<LeaseErrorCode> = {
  errors: leaseErrors,
  problem: leaseProblem,
  bodies: { unauthorized },
  headers: {
    401: { 'WWW-Authenticate': '`Bearer`; with a token, also `error="invalid_token"`.' },
    403: { 'WWW-Authenticate': '`Bearer error="insufficient_scope"`' },
    429: retryAfter,
    503: retryAfter,
  },
}

/** Of every request with a token. */
const commonErrors = [
  'unauthorized',
  'forbidden',
  'unknown-parameter',
  'body-too-large',
  'too-many-requests',
  'internal-error',
] as const
/** The slot could not process the request; whether a write took effect is unknown. `draining`: it had no effect. */
const slotErrors = ['overloaded', 'lease-unavailable', 'invalid-lease-record', 'draining'] as const
const pathErrors = ['invalid-slot', 'invalid-request'] as const
const writeErrors = [
  ...pathErrors,
  'missing-if-match',
  'invalid-if-match',
  'invalid-if-none-match',
  'invalid-holder',
  ...slotErrors,
] as const
const neverWritten = ['not-found', 'The slot was never written.'] as const
const current = {
  description: 'Not written: the current lease.',
  schema: lease,
  headers: { ...etag, ...remaining, ...conflict },
} as const

const complete = (id: string, spec: OperationSpec<LeaseErrorCode>) => ({
  ...spec,
  id,
  responses: {
    ...spec.results,
    ...toErrorResponses(
      [...(spec.errors ?? []), ...(spec.isPublic ? (['internal-error'] as const) : commonErrors)],
      errorForm,
      spec.errorResponses,
    ),
  },
})

const defineOperations = <const Specs extends Readonly<Record<string, OperationSpec<LeaseErrorCode>>>>(
  specs: Specs,
): Operations<Specs> =>
  Object.fromEntries(Object.entries(specs).map(([id, spec]) => [id, complete(id, spec)])) as Operations<Specs>

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
const preflight = (
  path: string,
  { allow, ...rest }: Pick<OperationSpec, 'tag' | 'pathParams'> & { readonly allow: string },
) =>
  options(path, {
    ...rest,
    summary: 'The methods of the path; needs no token.',
    results: { 204: { description: 'The methods.', headers: { Allow: `\`${allow}\`` } } },
    isPublic: true,
    ignoresUnknownQuery: true,
  })

/**
 * The operations of the lease witness. HEAD is GET without a body. Other methods of these paths are 405
 * `method-not-allowed` with `Allow`; other paths are 404 `not-found`.
 */
export const leaseOperations = defineOperations({
  readLease: get('/lease/{slot}', {
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
    results: {
      200: {
        links: { ...leaseLinks, ...acquireLink },
        description: 'The lease.',
        schema: lease,
        headers: { ...etag, ...remaining, ...preferenceApplied },
      },
      304: { description: 'The client knows the current generation.', headers: { ...etag, ...preferenceApplied } },
      412: { ...current, description: '`If-Match` does not match: the current lease.' },
    },
    errors: ['invalid-until', neverWritten, ...slotErrors, ...pathErrors],
    errorResponses: { 404: { headers: preferenceApplied } },
  }),
  writeLease: put('/lease/{slot}', {
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
    results: {
      200: {
        links: leaseLinks,
        description: 'Granted: the new lease.',
        schema: lease,
        headers: { ...etag, ...remaining },
      },
      412: { ...current, links: acquireLink },
    },
    errors: ['invalid-json', 'holder-mismatch', 'invalid-ttl', 'invalid-op', 'invalid-value', ...writeErrors],
  }),
  releaseLease: del('/lease/{slot}', {
    tag: 'Lease',
    summary: 'Releases the lease. Only its holder can release it.',
    pathParams: path,
    headers: z.object({ 'If-Match': ifMatch, 'X-Holder': holder, 'X-Lease-Slot': leaseSlot }),
    results: {
      204: { description: 'Released, or there was nothing to release; then without `ETag`.', headers: etag },
      412: current,
    },
    errors: ['missing-x-holder', ...writeErrors],
  }),
  getLeaseMethods: preflight('/lease/{slot}', {
    tag: 'Lease',
    allow: 'GET, HEAD, PUT, DELETE, OPTIONS',
    pathParams: anySlotPath,
  }),
  readLeaseHistory: get('/history/{slot}', {
    tag: 'Lease',
    summary: 'Lists the last changes of holder, newest first.',
    pathParams: path,
    results: { 200: { description: 'The transitions.', schema: leaseHistory } },
    errors: [neverWritten, ...slotErrors, ...pathErrors],
  }),
  getLeaseHistoryMethods: preflight('/history/{slot}', {
    tag: 'Lease',
    allow: 'GET, HEAD, OPTIONS',
    pathParams: anySlotPath,
  }),
  listLeases: get('/leases', {
    tag: 'Copies',
    summary: 'Lists leases from an eventually consistent copy, or exactly the leases of named slots.',
    description:
      'With `slot`, which can be repeated, the response is exact and has the number of waiting clients: each slot is read as `GET /lease/{slot}` would. Without it, the leases come from a copy that lags.',
    query: leaseListQuery.extend(leaseStatusQuery.partial().shape),
    results: {
      200: {
        description: 'A page of leases, by slot; or the leases of the named slots, in their order.',
        schema: z.discriminatedUnion('consistency', [leaseList, leaseStatusList]).meta({ id: 'LeaseListResponse' }),
      },
    },
    errors: ['invalid-prefix', 'invalid-limit', 'invalid-cursor', 'copy-unavailable', ...pathErrors],
  }),
  getLeaseListMethods: preflight('/leases', { tag: 'Copies', allow: 'GET, HEAD, OPTIONS' }),
  renewLeases: post('/leases/renew', {
    tag: 'Lease',
    summary: 'Renews up to 100 leases of one holder.',
    description:
      'Each lease is decided alone, as `PUT /lease/{slot}` with `op: "renew"` would be: one that cannot be renewed does not affect the others. If no response arrives, each of them may or may not be renewed.',
    body: { schema: renewLeasesRequest, required: true },
    results: {
      200: { description: 'A result for each lease, in the order of the request.', schema: renewLeasesResponse },
    },
    errors: ['invalid-json', 'invalid-holder', 'invalid-leases', 'invalid-generation', 'invalid-ttl', ...pathErrors],
  }),
  drainLeases: post('/leases/drain', {
    tag: 'Copies',
    summary: 'Brings the copies up to date before the leases move to a system that keeps them in Workers KV.',
    description:
      'For operators, with a token of full power. Only on Cloudflare, and only while the variable DRAIN is `true`. Repeat it with `nextCursor`, and later for the slots in `pending`.',
    body: { schema: drainLeasesRequest, required: false },
    results: { 200: { description: 'What was drained, and what was not.', schema: drainLeasesResponse } },
    errors: ['invalid-json', 'invalid-cursor', 'not-draining', 'copy-unavailable', ...pathErrors],
  }),
  getDrainMethods: preflight('/leases/drain', { tag: 'Copies', allow: 'POST, OPTIONS' }),
  getRenewalMethods: preflight('/leases/renew', { tag: 'Lease', allow: 'POST, OPTIONS' }),
  getHealth: get('/healthz', {
    tag: 'Health',
    summary: 'Reports whether the witness can respond; needs no token.',
    results: {
      200: { description: 'The worker and an object respond.', schema: probe },
      503: { description: 'No object responds.', schema: probe },
    },
    isPublic: true,
    ignoresUnknownQuery: true,
  }),
  getHealthMethods: preflight('/healthz', { tag: 'Health', allow: 'GET, HEAD, OPTIONS' }),
})

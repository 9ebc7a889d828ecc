import * as z from 'zod'
import { holder, lease, leaseHistory, leaseList, leaseListQuery, putLeaseRequest, slot } from './lease.ts'
import { leaseProblem } from './lease-problem.ts'
import type { Answer, Operation } from './operation.ts'

const tag = { ETag: 'The generation as an entity tag, `"7"`.' }
const again = { 'Retry-After': 'Seconds after which to ask again.' }
const applied = {
  'Preference-Applied': 'The wait that was honoured, `wait=30`; only of a read that waited or could have.',
}

const refused = (description: string, headers?: Answer['headers']): Answer => ({
  description,
  schema: leaseProblem,
  ...(headers ? { headers } : {}),
})
const unauthorized: Answer = {
  description: '`unauthorized`: the token is missing or is not on the allow-list. The body has no detail.',
  schema: z.object({ error: z.literal('unauthorized') }).meta({ id: 'Unauthorized' }),
  headers: { 'WWW-Authenticate': '`Bearer`' },
}
const tooLarge = refused(
  '`body-too-large`: the body is larger than 64 KiB. Of a GET too; a body that has no end closes the connection.',
)
const failed = refused('`internal-error`: a defect, told in the log under `requestId`.')
const unavailable = refused(
  '`overloaded`, `lease-unavailable` or `invalid-lease-record`: the slot could not decide; a write may have been made or not.',
  again,
)
const common = { 401: unauthorized, 413: tooLarge, 500: failed }
const brokenOff = '`invalid-request`: the body was broken off'
const lacking: Answer = {
  description: '`not-found`: the slot was never written.',
  schema: leaseProblem,
}
const current: Answer = { description: 'Not written: the lease as it stands.', schema: lease, headers: tag }

const path = z.object({ slot })
const ifMatch = z.string().meta({
  description: 'The generation that was last seen: `7`, `"7"` or `W/"7"`; `0` for a slot that was never written.',
  example: '0',
})
const leaseSlot = z.string().optional().meta({ description: 'Written to the log; changes nothing.' })
const preflight = (allow: string): Answer => ({
  description: 'The methods of the resource.',
  headers: { Allow: `\`${allow}\`` },
})

/**
 * The lease witness. A `HEAD` is a `GET` without a body; another method of these paths is 405 `method-not-allowed` with
 * `Allow`, another path 404 `not-found`.
 */
export const leaseOperations: readonly Operation[] = [
  {
    id: 'readLease',
    method: 'get',
    path: '/lease/{slot}',
    tag: 'Lease',
    summary: 'The lease as it stands, expired and released ones too.',
    description:
      'The slot is all of the path behind `/lease/`, percent-decoded once: `a/b`, `a%2Fb` and `a%2fb` are one slot. With `If-None-Match` and `Prefer: wait=N` the answer comes when the generation is another or the lease expires, after N seconds at the latest.',
    pathParams: path,
    headers: z.object({
      'If-None-Match': z
        .string()
        .optional()
        .meta({ description: 'Generations that are known: a list of entity tags, or `*`.', example: '"7"' }),
      Prefer: z
        .string()
        .optional()
        .meta({ description: '`wait=N` (RFC 7240 section 4.3), 60 s at most.', example: 'wait=30' }),
      'X-Lease-Slot': leaseSlot,
    }),
    answers: {
      200: { description: 'The lease.', schema: lease, headers: { ...tag, ...applied } },
      304: { description: 'The generation is a known one.', headers: { ...tag, ...applied } },
      400: refused(`\`invalid-slot\`; or ${brokenOff}.`),
      404: { ...lacking, headers: applied },
      503: unavailable,
      ...common,
    },
  },
  {
    id: 'writeLease',
    method: 'put',
    path: '/lease/{slot}',
    tag: 'Lease',
    summary: 'Acquires or renews, by compare-and-set.',
    pathParams: path,
    headers: z.object({
      'If-Match': ifMatch.optional(),
      'If-None-Match': z
        .literal('*')
        .optional()
        .meta({ description: '`*` says the same as `If-Match: 0`; one of the two is required.' }),
      'X-Holder': holder.optional().meta({ description: 'The holder, in place of the one in the body.' }),
      'X-Lease-Slot': leaseSlot,
    }),
    body: { schema: putLeaseRequest, required: false },
    answers: {
      200: { description: 'Granted: the new lease.', schema: lease, headers: tag },
      400: refused(
        `\`invalid-slot\`, \`missing-if-match\`, \`invalid-if-match\`, \`invalid-if-none-match\`, \`invalid-json\`, \`invalid-holder\`, \`holder-mismatch\`, \`invalid-ttl\`, \`invalid-op\`; or ${brokenOff}.`,
      ),
      412: current,
      503: unavailable,
      ...common,
    },
  },
  {
    id: 'releaseLease',
    method: 'delete',
    path: '/lease/{slot}',
    tag: 'Lease',
    summary: 'Releases, by its holder alone.',
    pathParams: path,
    headers: z.object({ 'If-Match': ifMatch, 'X-Holder': holder, 'X-Lease-Slot': leaseSlot }),
    answers: {
      204: { description: 'Released; or there is nothing to release.' },
      400: refused(
        `\`invalid-slot\`, \`missing-if-match\`, \`invalid-if-match\`, \`invalid-if-none-match\`, \`missing-x-holder\`, \`invalid-holder\`; or ${brokenOff}.`,
      ),
      412: current,
      503: unavailable,
      ...common,
    },
  },
  {
    id: 'leaseMethods',
    method: 'options',
    path: '/lease/{slot}',
    tag: 'Lease',
    summary: 'The methods of a lease; needs no token.',
    pathParams: path,
    answers: { 204: preflight('GET, HEAD, PUT, DELETE, OPTIONS'), 500: failed },
    isOpen: true,
  },
  {
    id: 'readLeaseHistory',
    method: 'get',
    path: '/history/{slot}',
    tag: 'Lease',
    summary: 'Who held it: the last transitions, newest first.',
    pathParams: path,
    answers: {
      200: { description: 'The transitions.', schema: leaseHistory },
      400: refused(`\`invalid-slot\`; or ${brokenOff}.`),
      404: lacking,
      503: unavailable,
      ...common,
    },
  },
  {
    id: 'historyMethods',
    method: 'options',
    path: '/history/{slot}',
    tag: 'Lease',
    summary: 'The methods of a history; needs no token.',
    pathParams: path,
    answers: { 204: preflight('GET, HEAD, OPTIONS'), 500: failed },
    isOpen: true,
  },
  {
    id: 'listLeases',
    method: 'get',
    path: '/leases',
    tag: 'Copies',
    summary: 'What is held where, from an eventually consistent copy.',
    query: leaseListQuery,
    answers: {
      200: { description: 'A page of them, by slot.', schema: leaseList },
      400: refused(`\`invalid-prefix\`, \`invalid-limit\`, \`invalid-cursor\`; or ${brokenOff}.`),
      503: refused('`copy-unavailable`: Workers KV did not answer. Leases are not affected.', again),
      ...common,
    },
  },
  {
    id: 'leasesMethods',
    method: 'options',
    path: '/leases',
    tag: 'Copies',
    summary: 'The methods of the list; needs no token.',
    answers: { 204: preflight('GET, HEAD, OPTIONS'), 500: failed },
    isOpen: true,
  },
]

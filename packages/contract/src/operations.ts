import * as z from 'zod'
import * as a from './allocation.ts'
import { deploymentProblem, problem } from './allocation-problem.ts'
import { validateKeysRequest, validateTokenRequest, validationProblem, validationResult } from './credentials.ts'
import * as d from './deployment.ts'
import { deploymentRequest } from './deployment-request.ts'
import { health, probe } from './health.ts'
import { poolDomain, subdomain } from './names.ts'
import type { Answer, Operation } from './operation.ts'

const refused = (description: string): Answer => ({ description, schema: problem })
const unreachable = refused(
  '`database-unavailable`: the database did not answer; whether a write took place is unknown.',
)
const malformed = refused('`invalid-json`: the body is not JSON; or `invalid-idempotency-key`.')
const tooLarge = refused('`body-too-large`: the body is larger than 64 KiB.')
const pool = z.object({ domain: poolDomain })
const retrySafe = z.object({
  'Idempotency-Key': a.idempotencyKey
    .optional()
    .meta({ description: 'Makes a retry safe: the same key with the same request replays the first outcome.' }),
})
const oneDeployment = z.object({ id: z.string().meta({ description: 'A UUID; anything else is 404.' }) })
const noDeployment = refused('`not-found`: there is no such deployment.')
const unchecked = (description: string): Answer => ({ description, schema: validationProblem })
const tooMany = unchecked('`too-many-attempts`: this caller checks too often; `Retry-After` says when to try again.')
const written = { 400: malformed, 413: tooLarge, 503: unreachable }

/** The allocation API: what is mounted, what is documented and what a client may rely on. */
export const operations: readonly Operation[] = [
  {
    id: 'listReservedLabels',
    method: 'get',
    path: '/api/v1/reserved',
    tag: 'Allocation',
    summary: 'The labels that no tenant can have, sorted.',
    answers: { 200: { description: 'The canonical list.', schema: a.reservedList } },
  },
  {
    id: 'checkName',
    method: 'get',
    path: '/api/v1/pool/{domain}/check',
    tag: 'Allocation',
    summary: 'Whether a name is free. Read `available`, not the status.',
    description: 'One look-up in the allocation table. DNS is never asked: a wildcard makes every name resolve.',
    pathParams: pool,
    query: z.object({ sub: z.string().optional().meta({ description: 'The subdomain to look up.', example: 'acme' }) }),
    answers: { 200: { description: 'Free, or why not.', schema: a.checkResult }, 503: unreachable },
  },
  {
    id: 'reserveName',
    method: 'post',
    path: '/api/v1/pool/{domain}/reserve',
    tag: 'Allocation',
    summary: 'Takes a free name for the lifetime of a reservation.',
    pathParams: pool,
    headers: retrySafe,
    body: { schema: a.reserveRequest, required: true },
    answers: {
      201: { description: 'Reserved. The token is given here and nowhere else.', schema: a.reserveResponse },
      409: refused('`conflict`: the name is taken.'),
      422: refused('`invalid-format`, `unsupported-pool`, `reserved` or `idempotency-key-reused`.'),
      ...written,
    },
  },
  {
    id: 'commitName',
    method: 'post',
    path: '/api/v1/pool/{domain}/commit',
    tag: 'Allocation',
    summary: 'Makes a reserved name active and publishes its records.',
    pathParams: pool,
    headers: retrySafe,
    body: { schema: a.commitRequest, required: true },
    answers: {
      200: { description: 'Active, and its records are published.', schema: a.commitResponse },
      202: {
        description: 'Active. The records are not out yet; they will be without anything more being asked.',
        schema: a.commitPendingResponse,
      },
      403: refused('`token-mismatch`: not the token of this reservation.'),
      404: refused('`not-found`: no reservation of this name.'),
      409: refused('`already-active`: the name has been committed.'),
      410: refused('`reservation-expired`: its time was up; reserve again.'),
      422: refused(
        '`invalid-format`, `missing-token`, `missing-lb-ip`, `invalid-lb-ip`, `invalid-fqdn`, `unsupported-pool` or `idempotency-key-reused`.',
      ),
      ...written,
    },
  },
  {
    id: 'renewReservation',
    method: 'post',
    path: '/api/v1/pool/{domain}/renew',
    tag: 'Allocation',
    summary: 'Extends a reservation to a full lifetime from now, up to its maximum age.',
    pathParams: pool,
    body: { schema: a.renewRequest, required: true },
    answers: {
      200: { description: 'Extended.', schema: a.reservedAllocation },
      403: refused('`token-mismatch`: not the token of this reservation.'),
      404: refused('`not-found`: no reservation of this name.'),
      409: refused('`already-active`: the name has been committed.'),
      410: refused('`reservation-expired`: its time was up; reserve again.'),
      422: refused('`invalid-format`, `missing-token` or `unsupported-pool`.'),
      ...written,
    },
  },
  {
    id: 'releaseName',
    method: 'delete',
    path: '/api/v1/pool/{domain}/release',
    tag: 'Allocation',
    summary: 'Frees a name and withdraws its records.',
    pathParams: pool,
    query: z.object({ sub: subdomain.optional().meta({ description: 'For callers that cannot send a body.' }) }),
    headers: retrySafe,
    body: { schema: a.releaseRequest, required: false },
    answers: {
      200: { description: 'Free, and its records are gone.', schema: a.releaseResponse },
      202: {
        description: 'Free. Its records are not all gone yet; they will be without anything more being asked.',
        schema: a.releasePendingResponse,
      },
      403: refused('`token-mismatch`: a token was given and is not the one of this allocation.'),
      404: refused('`not-found`: nobody holds this name.'),
      422: refused('`invalid-format`, `unsupported-pool` or `idempotency-key-reused`.'),
      ...written,
    },
  },
  {
    id: 'getAllocation',
    method: 'get',
    path: '/api/v1/pool/{domain}/allocations/{subdomain}',
    tag: 'Allocation',
    summary: 'One allocation, with the state of its records: what to poll after a 202.',
    pathParams: pool.extend({ subdomain }),
    answers: {
      200: { description: 'Taken, and by whom.', schema: a.allocation },
      404: refused('`not-found`: nobody holds this name.'),
      422: refused('`invalid-format` or `unsupported-pool`.'),
      503: unreachable,
    },
  },
  {
    id: 'listAllocations',
    method: 'get',
    path: '/api/v1/pool/{domain}/list',
    tag: 'Operator',
    summary: 'Every allocation of a pool, sorted by subdomain.',
    description: 'Streamed: a pool of any size is answered in constant memory. Each page is read as of its own moment.',
    pathParams: pool,
    query: a.listQuery,
    answers: {
      200: { description: 'The allocations.', schema: a.listResponse },
      422: refused('`unsupported-pool`, `invalid-state`, `invalid-limit` or `invalid-cursor`.'),
      503: unreachable,
    },
  },
  {
    id: 'readHistory',
    method: 'get',
    path: '/api/v1/pool/{domain}/history',
    tag: 'Operator',
    summary: 'Every transition of a pool, or of one name with `sub`; newest first.',
    pathParams: pool,
    query: a.historyQuery,
    answers: {
      200: { description: 'The transitions.', schema: a.historyResponse },
      422: refused('`invalid-format`, `unsupported-pool`, `invalid-limit` or `invalid-cursor`.'),
      503: unreachable,
    },
  },
  {
    id: 'convergeZone',
    method: 'post',
    path: '/api/v1/pool/{domain}/converge',
    tag: 'Operator',
    summary: 'Compares a zone with its desired records, now, and repairs it; or shows what that would do.',
    description:
      "On the operator's address alone. It waits for the repair for a bounded time, and lets names that failed be tried at once.",
    pathParams: pool,
    query: a.convergeQuery,
    answers: {
      200: {
        description: 'What the zone lacked. Without `dryRun`, nothing of it is left to do.',
        schema: a.convergeResponse,
      },
      202: {
        description: 'Some names are not as desired yet; it goes on without anything more being asked.',
        schema: a.convergePendingResponse,
      },
      401: refused('`unauthorized`: this address needs an operator token.'),
      422: refused('`invalid-format` or `unsupported-pool`.'),
      503: refused(
        '`dns-unavailable`: the DNS provider did not answer, or others write the zone just now; or `database-unavailable`.',
      ),
    },
  },
  {
    id: 'createDeployment',
    method: 'post',
    path: '/api/v1/deployments',
    tag: 'Deployments',
    summary: 'Takes the name, derives the bucket, and begins to make the infrastructure.',
    headers: retrySafe,
    body: { schema: deploymentRequest, required: true },
    answers: {
      201: { description: 'Begun; `Location` says where it is. Follow `streamURL`.', schema: d.deploymentCreated },
      400: {
        description: '`invalid-deployment`, with every faulty field; `invalid-json`; or `invalid-idempotency-key`.',
        schema: deploymentProblem,
      },
      409: refused(
        '`subdomain-conflict`: the name is taken; `fqdn-conflict`: another deployment has this FQDN; `bucket-conflict`: another one has the bucket that this FQDN leads to.',
      ),
      413: tooLarge,
      422: refused('`idempotency-key-reused`: the key came with another request before.'),
      429: refused(
        '`too-many-attempts`: this caller has keys checked too often; `Retry-After` says when to try again.',
      ),
      503: refused(
        '`provisioning-unavailable`: no infrastructure can be made just now; `object-storage-unavailable`; or `database-unavailable`: then it is unknown whether it was begun.',
      ),
    },
  },
  {
    id: 'listDeployments',
    method: 'get',
    path: '/api/v1/deployments',
    tag: 'Deployments',
    summary: 'The deployments, newest first.',
    query: d.deploymentsQuery,
    answers: {
      200: { description: 'A page of them.', schema: d.deploymentsResponse },
      422: refused('`invalid-state`, `invalid-limit` or `invalid-cursor`.'),
      503: unreachable,
    },
  },
  {
    id: 'getDeployment',
    method: 'get',
    path: '/api/v1/deployments/{id}',
    tag: 'Deployments',
    summary: 'One deployment as it stands. No key is in it.',
    pathParams: oneDeployment,
    answers: { 200: { description: 'As it stands.', schema: d.deployment }, 404: noDeployment, 503: unreachable },
  },
  {
    id: 'removeDeployment',
    method: 'delete',
    path: '/api/v1/deployments/{id}',
    tag: 'Deployments',
    summary: 'Cancels a deployment that is under way; forgets one that is over.',
    pathParams: oneDeployment,
    answers: {
      202: { description: 'It is being cancelled; it ends as `failed`.', schema: d.deployment },
      204: { description: 'Forgotten.' },
      404: noDeployment,
      503: unreachable,
    },
  },
  {
    id: 'followDeployment',
    method: 'get',
    path: '/api/v1/deployments/{id}/logs',
    tag: 'Deployments',
    summary: 'The log as server-sent events: what there is, then what comes, then `event: done`.',
    description:
      'Each event has the number of its line as `id`, no name, and a `DeploymentEvent` as `data`; the last one is named `done` and has the `Deployment`. A stream that ends without it goes on elsewhere: connect again with `Last-Event-ID`, as an EventSource does by itself.',
    pathParams: oneDeployment,
    headers: z.object({ 'Last-Event-ID': d.lastEventId.optional() }),
    answers: {
      200: { description: 'The stream.', mediaType: 'text/event-stream', schema: z.string() },
      404: noDeployment,
      422: refused('`invalid-cursor`: Last-Event-ID is no id of an event.'),
      503: refused('`provisioning-unavailable`: too many follow just now; or `database-unavailable`.'),
    },
  },
  {
    id: 'validateObjectStorageKeys',
    method: 'post',
    path: '/api/v1/credentials/object-storage/validate',
    tag: 'Credentials',
    summary: 'Whether the object storage takes these keys. Read `valid`, not the status.',
    description:
      'Lists the buckets with them, once, within 8 s; nothing is written and nothing is kept. Only a 200 says anything about the keys.',
    body: { schema: validateKeysRequest('').meta({ id: 'ValidateKeysRequest' }), required: true },
    answers: {
      200: { description: 'The provider takes them, or refuses them: `message` says why.', schema: validationResult },
      400: unchecked(
        '`invalid-json`, `missing-region`, `invalid-region`, `invalid-access-key`, `invalid-secret-key` or `unsupported-provider`.',
      ),
      413: tooLarge,
      429: tooMany,
      503: unchecked('`object-storage-unavailable`: the keys could not be checked; they may be good.'),
    },
  },
  {
    id: 'validateToken',
    method: 'post',
    path: '/api/v1/credentials/validate',
    tag: 'Credentials',
    summary: 'Whether a provider takes this API token. Read `valid`, not the status.',
    description: 'One read with it, within 8 s; nothing is written and nothing is kept.',
    body: { schema: validateTokenRequest([]).meta({ id: 'ValidateTokenRequest' }), required: true },
    answers: {
      200: { description: 'The provider takes it, or refuses it: `message` says why.', schema: validationResult },
      400: unchecked('`invalid-json`, `unsupported-provider` or `invalid-token`.'),
      413: tooLarge,
      429: tooMany,
      503: unchecked('`provider-unavailable`: the token could not be checked; it may be good.'),
    },
  },
  {
    id: 'health',
    method: 'get',
    path: '/healthz',
    tag: 'Health',
    summary: 'Whether the service and its database work.',
    answers: {
      200: { description: 'They do.', schema: health },
      503: { description: 'The database did not answer within 2 s.', schema: health },
    },
  },
  {
    id: 'livez',
    method: 'get',
    path: '/livez',
    tag: 'Health',
    summary: 'Liveness: the process answers. Never asks the database, so that its outage restarts nobody.',
    answers: { 200: { description: 'Alive.', schema: probe } },
  },
  {
    id: 'readyz',
    method: 'get',
    path: '/readyz',
    tag: 'Health',
    summary: 'Readiness: requests should be sent here.',
    answers: {
      200: { description: 'Ready.', schema: probe },
      503: { description: 'Starting, draining before it stops, or without its database.', schema: probe },
    },
  },
  {
    id: 'metrics',
    method: 'get',
    path: '/metrics',
    tag: 'Operator',
    summary: 'Metrics in the Prometheus text format.',
    answers: { 200: { description: 'Metrics.', mediaType: 'text/plain', schema: z.string() } },
  },
  {
    id: 'openapi',
    method: 'get',
    path: '/openapi.json',
    tag: 'Description',
    summary: 'This description.',
    answers: { 200: { description: 'OpenAPI 3.1.', schema: z.record(z.string(), z.unknown()) } },
  },
  {
    id: 'reference',
    method: 'get',
    path: '/docs',
    tag: 'Description',
    summary: 'This description as a page for people; it needs no internet.',
    answers: { 200: { description: 'A page.', mediaType: 'text/html', schema: z.string() } },
  },
  {
    id: 'referenceAsset',
    method: 'get',
    path: '/docs/{asset}',
    tag: 'Description',
    summary: 'A script or a style sheet of the page.',
    pathParams: z.object({ asset: z.string() }),
    answers: {
      200: { description: 'The file.', mediaType: 'application/octet-stream', schema: z.string() },
      404: refused('`not-found`: no such file.'),
    },
  },
]

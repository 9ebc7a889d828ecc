import * as z from 'zod'
import * as a from './allocation.ts'
import { deploymentProblem } from './allocation-problem.ts'
import * as b from './bucket-claim.ts'
import {
  commonErrors,
  databaseUnavailable,
  error,
  fromOtherPage,
  invalidJson,
  listsOnly,
  listUnavailable,
  operatorOnly,
  pool,
  tooLarge,
  type ValidationErrorResponse,
} from './common-responses.ts'
import { validateKeysRequest, validateTokenRequest, validationProblem, validationResult } from './credentials.ts'
import * as d from './deployment.ts'
import * as dh from './deployment-history.ts'
import * as dc from './domain-challenge.ts'
import { idempotencyKey, subdomain } from './fields.ts'
import { health, probe } from './health.ts'
import type { Operation } from './operation.ts'
import { operatorOperations } from './operator-operations.ts'
import { exportLine, importQuery, importResponse } from './transfer.ts'

const idempotencyHeader = z.object({
  'Idempotency-Key': idempotencyKey.optional().meta({
    description:
      'Makes retries safe: the same key with the same request returns the first result. A secret of the client: use at least 128 random bits.',
  }),
})
const deploymentPath = z.object({ id: z.string().meta({ description: 'A UUID; other values are 404.' }) })
const deploymentToken = d.deploymentTokenHeader
const wrongToken = error(
  `\`token-mismatch\`: in-cluster, \`X-Deployment-Token\` must be the token of this deployment; or ${fromOtherPage}`,
)
const notStarted = {
  400: {
    description:
      '`invalid-deployment`, with every invalid field: the credentials are missing or rejected, or new input is invalid or changes what cannot change; or `invalid-json`.',
    schema: deploymentProblem,
  },
  403: wrongToken,
  404: error('`not-found`: no such deployment.'),
  413: tooLarge,
  429: error('`too-many-attempts`: too many credential checks by this caller; retry after `Retry-After` seconds.'),
  503: error(
    '`provisioning-unavailable`: provisioning is not possible at the moment; `object-storage-unavailable`; `dns-unavailable`: an apply could not look up the TXT record that proves the domain; `database-unavailable`; or `database-read-only`.',
  ),
}
const nextPage = (operationId: string, ...pathParams: readonly string[]) => ({
  nextPage: {
    operationId,
    parameters: {
      'query.cursor': '$response.body#/nextCursor',
      ...Object.fromEntries(pathParams.map(name => [`path.${name}`, `$request.path.${name}`])),
    },
  },
})
/** The requests that a client sends with the token of a reservation. `body` is the place of the name. */
const byName = (body: string) => ({
  parameters: { 'path.domain': `${body}/poolDomain`, 'path.subdomain': `${body}/subdomain` },
})
const withToken = (token: string) => ({
  parameters: { 'path.domain': '$response.body#/poolDomain' },
  requestBody: { subdomain: '$response.body#/subdomain', reservationToken: token },
})
const nameLinks = (token: string) => ({
  get: { operationId: 'getAllocation', ...byName('$response.body#') },
  release: { operationId: 'releaseName', ...withToken(token) },
})
const reservedLinks = {
  ...nameLinks('$response.body#/reservationToken'),
  renew: { operationId: 'renewReservation', ...withToken('$response.body#/reservationToken') },
  commit: {
    operationId: 'commitName',
    parameters: { 'path.domain': '$response.body#/poolDomain' },
    requestBody: {
      subdomain: '$response.body#/subdomain',
      reservationToken: '$response.body#/reservationToken',
      sovereignFQDN: '{$response.body#/subdomain}.{$response.body#/poolDomain}',
    },
  },
} as const
const committedLinks = {
  ...nameLinks('$request.body#/reservationToken'),
  update: { operationId: 'updateName', ...withToken('$request.body#/reservationToken') },
} as const
const deploymentById = { parameters: { 'path.id': '$response.body#/id' } }
const deploymentWithToken = {
  parameters: { ...deploymentById.parameters, 'header.X-Deployment-Token': '$response.body#/deploymentToken' },
}
const createdLinks = {
  get: { operationId: 'getDeployment', ...deploymentById },
  follow: { operationId: 'followDeployment', ...deploymentById },
  apply: { operationId: 'applyDeployment', ...deploymentWithToken },
  plan: { operationId: 'planDeployment', ...deploymentWithToken },
  destroy: { operationId: 'destroyDeployment', ...deploymentWithToken },
  unlock: { operationId: 'unlockDeployment', ...deploymentById },
  remove: { operationId: 'removeDeployment', ...deploymentWithToken },
} as const
const deploymentNotFound = error('`not-found`: no such deployment.')
const validationError = (description: string): ValidationErrorResponse => ({
  description,
  schema: validationProblem,
})
const tooManyAttempts = validationError(
  '`too-many-attempts`: too many credential checks by this caller; retry after `Retry-After` seconds.',
)
const writeErrors = { 400: invalidJson, 413: tooLarge, 503: databaseUnavailable }

const orphans = {
  pathParams: pool,
  query: a.convergeQuery,
  body: { schema: a.orphansRequest, required: false },
  responses: {
    ...commonErrors,
    404: operatorOnly,
    200: { description: 'The orphans. Without `dryRun`, they are adopted or removed.', schema: a.orphansResponse },
    202: {
      description: 'The zone does not have the result yet; no further request is needed.',
      schema: a.orphansPendingResponse,
    },
    400: error('`invalid-json`: the body is not JSON.'),
    413: tooLarge,
    422: error('`invalid-format` or `unsupported-pool`.'),
    503: error(
      '`dns-unavailable`: the DNS provider did not respond, or another replica is updating the zone; `database-unavailable`; or `database-read-only`.',
    ),
  },
} as const

/** The operations of the allocation API. Tests compare them with the mounted routes. */
export const operations = [
  {
    id: 'listReservedLabels',
    method: 'get',
    path: '/api/v1/reserved',
    tag: 'Allocation',
    summary: 'The labels that no tenant can reserve, sorted.',
    responses: { ...commonErrors, 200: { description: 'The canonical list.', schema: a.reservedList } },
  },
  {
    id: 'checkName',
    method: 'get',
    path: '/api/v1/pool/{domain}/check',
    tag: 'Allocation',
    summary: 'Returns whether a name is free. Read `available`, not the status.',
    description:
      'Looks up the name in the allocation table. DNS is not queried: a wildcard record makes every name resolve.',
    pathParams: pool,
    query: z.object({ sub: z.string().optional().meta({ description: 'The subdomain to look up.', example: 'acme' }) }),
    responses: {
      ...commonErrors,
      200: { description: 'Whether the name is free, and the reason if not.', schema: a.checkResult },
      503: databaseUnavailable,
    },
  },
  {
    id: 'reserveName',
    method: 'post',
    path: '/api/v1/pool/{domain}/reserve',
    tag: 'Allocation',
    summary: 'Reserves a free name for a limited time.',
    pathParams: pool,
    headers: idempotencyHeader,
    body: { schema: a.reserveRequest, required: true },
    responses: {
      ...commonErrors,
      201: {
        links: reservedLinks,
        description: 'Reserved. Only this response contains the token.',
        schema: a.reserveResponse,
      },
      409: {
        description:
          '`conflict`: the name is reserved or active, or infrastructure remains under it; `cooling-off`: it was released, and only its former client can reserve it before `availableAt`.',
        schema: a.reserveProblem,
      },
      422: error('`invalid-format`, `unsupported-pool`, `pool-draining`, `reserved` or `idempotency-key-reused`.'),
      ...writeErrors,
    },
  },
  {
    id: 'commitName',
    method: 'post',
    path: '/api/v1/pool/{domain}/commit',
    tag: 'Allocation',
    summary: 'Activates a reserved name and publishes its records.',
    pathParams: pool,
    headers: idempotencyHeader,
    body: { schema: a.createCommitRequest({ acceptsLoopback: false }), required: true },
    responses: {
      ...commonErrors,
      200: { links: committedLinks, description: 'Active, with published records.', schema: a.commitResponse },
      202: {
        links: committedLinks,
        description: 'Active. The records are not published yet; no further request is needed.',
        schema: a.commitPendingResponse,
      },
      403: error(`\`token-mismatch\`: the token does not match this reservation; or ${fromOtherPage}`),
      404: error('`not-found`: the name is not reserved.'),
      409: error(
        '`already-active`: the name is already committed; `conflict`: the request is repeated under its Idempotency-Key, and another client has reserved the name since.',
      ),
      410: error('`reservation-expired`: the reservation has expired; reserve the name again.'),
      422: error(
        '`invalid-format`, `missing-token`, `missing-lb-ip`, `invalid-lb-ip`, `invalid-fqdn`, `unsupported-pool` or `idempotency-key-reused`.',
      ),
      ...writeErrors,
    },
  },
  {
    id: 'updateName',
    method: 'post',
    path: '/api/v1/pool/{domain}/update',
    tag: 'Allocation',
    summary: 'Changes the address of an active name and its records in one write.',
    description:
      'The records are never absent in between. On the operator listener, `reservationToken` may be omitted.',
    pathParams: pool,
    headers: idempotencyHeader,
    body: { schema: a.createUpdateRequest({ acceptsLoopback: false }, true), required: true },
    responses: {
      ...commonErrors,
      200: { description: 'Changed, and the records are published.', schema: a.commitResponse },
      202: {
        description: 'Changed. The records are not published yet; no further request is needed.',
        schema: a.commitPendingResponse,
      },
      403: error(`\`token-mismatch\`: the token does not match this allocation; or ${fromOtherPage}`),
      404: error('`not-found`: the name is neither reserved nor active.'),
      409: error(
        '`not-active`: the name is only reserved; `conflict`: the request is repeated under its Idempotency-Key, and another client has the name.',
      ),
      422: error(
        '`invalid-format`, `missing-token`, `missing-lb-ip`, `invalid-lb-ip`, `invalid-fqdn`, `unsupported-pool` or `idempotency-key-reused`.',
      ),
      ...writeErrors,
    },
  },
  {
    id: 'liftCoolOff',
    method: 'delete',
    path: '/api/v1/pool/{domain}/cool-off/{subdomain}',
    tag: 'Operator',
    summary: 'Makes a name that is in its cool-off free.',
    description: 'Only on the operator listener.',
    pathParams: pool.extend({ subdomain }),
    responses: {
      ...commonErrors,
      204: { description: 'Any client can reserve the name.' },
      404: error('`not-found`: the name is not in a cool-off; or only the operator listener has this path.'),
      422: error('`invalid-format` or `unsupported-pool`.'),
      503: databaseUnavailable,
    },
  },
  {
    id: 'renewReservation',
    method: 'post',
    path: '/api/v1/pool/{domain}/renew',
    tag: 'Allocation',
    summary: 'Extends a reservation by its full lifetime from now, up to its maximum age.',
    pathParams: pool,
    body: { schema: a.renewRequest, required: true },
    responses: {
      ...commonErrors,
      200: {
        links: { get: { operationId: 'getAllocation', ...byName('$response.body#') } },
        description: 'Extended.',
        schema: a.reservedAllocation,
      },
      403: error(`\`token-mismatch\`: the token does not match this reservation; or ${fromOtherPage}`),
      404: error('`not-found`: the name is not reserved.'),
      409: error('`already-active`: the name is already committed.'),
      410: error('`reservation-expired`: the reservation has expired; reserve the name again.'),
      422: error('`invalid-format`, `missing-token` or `unsupported-pool`.'),
      ...writeErrors,
    },
  },
  {
    id: 'releaseName',
    method: 'delete',
    path: '/api/v1/pool/{domain}/release',
    tag: 'Allocation',
    summary: 'Releases a name and deletes its records.',
    pathParams: pool,
    query: z.object({ sub: subdomain.optional().meta({ description: 'For callers that cannot send a body.' }) }),
    headers: idempotencyHeader,
    body: { schema: a.releaseRequest, required: false },
    responses: {
      ...commonErrors,
      200: {
        links: { liftCoolOff: { operationId: 'liftCoolOff', ...byName('$response.body#/freed') } },
        description: 'Released, and its records are deleted.',
        schema: a.releaseResponse,
      },
      202: {
        description: 'Released. Some records are not deleted yet; no further request is needed.',
        schema: a.releasePendingResponse,
      },
      403: error(`\`token-mismatch\`: the token in the request does not match this allocation; or ${fromOtherPage}`),
      404: error('`not-found`: no such allocation.'),
      422: error('`invalid-format`, `unsupported-pool` or `idempotency-key-reused`.'),
      ...writeErrors,
    },
  },
  {
    id: 'getAllocation',
    method: 'get',
    path: '/api/v1/pool/{domain}/allocations/{subdomain}',
    tag: 'Allocation',
    summary: 'Returns one allocation with the status of its records. Poll it after a 202.',
    pathParams: pool.extend({ subdomain }),
    responses: {
      ...commonErrors,
      200: { description: 'The allocation.', schema: a.allocation },
      404: error('`not-found`: no such allocation.'),
      422: error('`invalid-format` or `unsupported-pool`.'),
      503: databaseUnavailable,
    },
  },
  {
    id: 'listAllocations',
    method: 'get',
    path: '/api/v1/pool/{domain}/list',
    tag: 'Operator',
    summary: 'Lists the allocations of a pool, sorted by subdomain.',
    description:
      'The response is streamed in constant memory; the connection of a client that reads nothing for a minute is closed. Each page is a separate read, so the list is not one snapshot.',
    pathParams: pool,
    query: a.listQuery,
    responses: {
      ...commonErrors,
      404: listsOnly,
      200: {
        links: {
          get: { operationId: 'getAllocation', ...byName('$response.body#/allocations/0') },
          ...nextPage('listAllocations', 'domain'),
        },
        description: 'The allocations.',
        schema: a.listResponse,
      },
      422: error('`unsupported-pool`, `invalid-state`, `invalid-limit` or `invalid-cursor`.'),
      503: listUnavailable,
    },
  },
  {
    id: 'readHistory',
    method: 'get',
    path: '/api/v1/pool/{domain}/history',
    tag: 'Operator',
    summary: 'Lists the transitions of a pool, or of one name with `sub`; newest first.',
    pathParams: pool,
    query: a.historyQuery,
    responses: {
      ...commonErrors,
      404: listsOnly,
      200: { links: nextPage('readHistory', 'domain'), description: 'The transitions.', schema: a.historyResponse },
      422: error('`invalid-format`, `unsupported-pool`, `invalid-limit` or `invalid-cursor`.'),
      503: listUnavailable,
    },
  },
  {
    id: 'convergeZone',
    method: 'post',
    path: '/api/v1/pool/{domain}/converge',
    tag: 'Operator',
    summary: 'Compares a zone with its desired records and repairs it, or lists the changes only.',
    description:
      'Only on the operator listener. Waits a bounded time for the repair, and retries failed names immediately.',
    pathParams: pool,
    query: a.convergeQuery,
    responses: {
      ...commonErrors,
      404: operatorOnly,
      200: {
        description: 'The differences. Without `dryRun`, all are repaired.',
        schema: a.convergeResponse,
      },
      202: {
        description: 'Some names do not have their desired records yet; no further request is needed.',
        schema: a.convergePendingResponse,
      },
      422: error('`invalid-format` or `unsupported-pool`.'),
      503: error(
        '`dns-unavailable`: the DNS provider did not respond, or another replica is updating the zone; `database-unavailable`; or `database-read-only`.',
      ),
    },
  },
  {
    id: 'republishZone',
    method: 'post',
    path: '/api/v1/pool/{domain}/republish',
    tag: 'Operator',
    summary: 'Brings the records of the active names to the current template, or lists the changes only.',
    description:
      'Only on the operator listener. The template is the configured record names and TTL. Waits a bounded time for the records. Repeating it changes nothing.',
    pathParams: pool,
    query: a.republishQuery,
    responses: {
      ...commonErrors,
      404: operatorOnly,
      200: {
        description: 'The changes. Without `dryRun`, all are published.',
        schema: a.republishResponse,
      },
      202: {
        description: 'Some names do not have their desired records yet; no further request is needed.',
        schema: a.republishPendingResponse,
      },
      422: error('`invalid-format` or `unsupported-pool`.'),
      503: error(
        '`dns-unavailable`: another replica is updating the zone, and some names may not be changed yet: repeat the request; `database-unavailable`; or `database-read-only`.',
      ),
    },
  },
  {
    id: 'resumeZone',
    method: 'post',
    path: '/api/v1/pool/{domain}/resume',
    tag: 'Operator',
    summary:
      'Starts the writes to a stopped zone again, with the database or the zone as the truth, or lists the differences only.',
    description:
      'Only on the operator listener. A zone is stopped if the database is older than its last write, if another database wrote it, or after an import. If the call is interrupted, the zone stays stopped, and a repetition does the rest.',
    pathParams: pool,
    query: a.resumeQuery,
    body: { schema: a.resumeRequest, required: true },
    responses: {
      ...commonErrors,
      404: operatorOnly,
      200: { description: 'The differences. Without `dryRun`, all are settled.', schema: a.resumeResponse },
      202: {
        description: 'The zone is written again; some names do not have their desired records yet.',
        schema: a.resumePendingResponse,
      },
      400: invalidJson,
      409: error('`not-stopped`; or `dns-writes-off`: `PDM_DNS_WRITES=off` is set (not with `dryRun`).'),
      413: tooLarge,
      422: error('`invalid-format` or `unsupported-pool`.'),
      503: error(
        '`dns-unavailable`: the DNS provider did not respond, or another replica is updating the zone; `database-unavailable`; or `database-read-only`.',
      ),
    },
  },
  {
    id: 'listFormerRecords',
    method: 'get',
    path: '/api/v1/pool/{domain}/former-records',
    tag: 'Operator',
    summary: 'Lists the records that an earlier DNS provider has from before a move, for removal there.',
    description: 'Only on the operator listener. The list of a provider ends when the zone moves back to it.',
    pathParams: pool,
    query: a.formerRecordsQuery,
    responses: {
      ...commonErrors,
      404: operatorOnly,
      200: {
        links: nextPage('listFormerRecords', 'domain'),
        description: 'The record sets.',
        schema: a.formerRecordsResponse,
      },
      422: error('`invalid-cursor` or `unsupported-pool`.'),
      503: databaseUnavailable,
    },
  },
  {
    id: 'adoptOrphans',
    method: 'post',
    path: '/api/v1/pool/{domain}/orphans/adopt',
    tag: 'Operator',
    summary:
      'Makes allocations of the records that match the template and that no allocation explains, or lists them only.',
    description:
      'Only on the operator listener. The address and the records of an adopted name are those that the zone has. No client has its token; a reservation or cool-off of the name ends. An active name is left out. Repeating it changes nothing.',
    ...orphans,
  },
  {
    id: 'removeOrphans',
    method: 'post',
    path: '/api/v1/pool/{domain}/orphans/remove',
    tag: 'Operator',
    summary:
      'Deletes the records at and below the names whose records match the template and that no allocation explains, or lists them only.',
    description:
      'Only on the operator listener. As after a release, every record set at or below the name is deleted, whichever client created it; the history lists them. Waits a bounded time for it. Repeating it changes nothing.',
    ...orphans,
  },
  {
    id: 'createDeployment',
    method: 'post',
    path: '/api/v1/deployments',
    tag: 'Deployments',
    summary: 'Reserves the name, derives the bucket and starts provisioning.',
    headers: idempotencyHeader,
    body: { schema: d.deploymentRequest, required: true },
    responses: {
      ...commonErrors,
      201: {
        links: createdLinks,
        description: 'Started; `Location` is its URL. Follow `streamURL`.',
        schema: d.deploymentCreated,
      },
      400: {
        description: '`invalid-deployment`, with every invalid field; `invalid-json`; or `invalid-idempotency-key`.',
        schema: deploymentProblem,
      },
      409: error(
        '`subdomain-conflict`: the name is reserved or active; `fqdn-conflict`: another deployment has this FQDN; `bucket-conflict`: another deployment has the bucket derived from this FQDN; `fqdn-remains`: infrastructure or a bucket of an earlier deployment remains; `domain-not-proven`: a TXT record with a value of `POST /api/v1/domains/challenge` is required.',
      ),
      413: tooLarge,
      422: error('`idempotency-key-reused`: the key was already used with a different request.'),
      429: error('`too-many-attempts`: too many credential checks by this caller; retry after `Retry-After` seconds.'),
      503: error(
        '`provisioning-unavailable`: provisioning is not possible at the moment; `object-storage-unavailable`; `dns-unavailable`: the TXT record that proves the domain could not be looked up; or `database-unavailable`: whether the deployment was started is unknown.',
      ),
    },
  },
  {
    id: 'listDeployments',
    method: 'get',
    path: '/api/v1/deployments',
    tag: 'Deployments',
    summary: 'Lists the deployments, newest first.',
    query: d.deploymentsQuery,
    responses: {
      ...commonErrors,
      404: listsOnly,
      200: {
        links: {
          get: { operationId: 'getDeployment', parameters: { 'path.id': '$response.body#/deployments/0/id' } },
          ...nextPage('listDeployments'),
        },
        description: 'A page of deployments.',
        schema: d.deploymentsResponse,
      },
      422: error('`invalid-state`, `invalid-limit` or `invalid-cursor`.'),
      503: listUnavailable,
    },
  },
  {
    id: 'readDeploymentHistory',
    method: 'get',
    path: '/api/v1/deployments/history',
    tag: 'Operator',
    summary:
      'Lists what was done to deployments, who did it and from where; newest first. Only on the operator listener.',
    description: 'Entries outlive their deployments.',
    query: dh.deploymentHistoryQuery,
    responses: {
      ...commonErrors,
      404: operatorOnly,
      200: {
        links: nextPage('readDeploymentHistory'),
        description: 'A page of entries.',
        schema: dh.deploymentHistoryResponse,
      },
      422: error('`invalid-format`, `invalid-limit` or `invalid-cursor`.'),
      503: listUnavailable,
    },
  },
  {
    id: 'getDeployment',
    method: 'get',
    path: '/api/v1/deployments/{id}',
    tag: 'Deployments',
    summary: 'Returns one deployment, without its credentials.',
    pathParams: deploymentPath,
    responses: {
      ...commonErrors,
      200: { description: 'The deployment.', schema: d.deployment },
      404: deploymentNotFound,
      503: databaseUnavailable,
    },
  },
  {
    id: 'applyDeployment',
    method: 'post',
    path: '/api/v1/deployments/{id}/apply',
    tag: 'Deployments',
    summary: 'Applies the current module again, also with new input: resumes, updates or reinstalls.',
    pathParams: deploymentPath,
    headers: deploymentToken,
    body: { schema: d.applyRequest, required: false },
    responses: {
      ...commonErrors,
      202: { description: 'Started. Follow `streamURL`.', schema: d.deploymentStarted },
      ...notStarted,
      409: error(
        '`in-progress`; `destroy-incomplete`: a destroy failed, and only a destroy is accepted; `subdomain-conflict`, `fqdn-conflict`, `fqdn-remains` or `bucket-conflict`: the name, the FQDN or the bucket belongs to another deployment now; `domain-not-proven`: nothing has kept the domain for this deployment, so that it must be proven again.',
      ),
    },
  },
  {
    id: 'planDeployment',
    method: 'post',
    path: '/api/v1/deployments/{id}/plan',
    tag: 'Deployments',
    summary: 'Returns what an apply or a destroy would do. Changes nothing.',
    pathParams: deploymentPath,
    headers: deploymentToken,
    body: { schema: d.planRequest, required: false },
    responses: {
      ...commonErrors,
      200: { description: 'The plan.', schema: d.deploymentPlan },
      ...notStarted,
      409: error('`in-progress`, `destroy-incomplete`, or `plan-failed` with the reason.'),
    },
  },
  {
    id: 'destroyDeployment',
    method: 'post',
    path: '/api/v1/deployments/{id}/destroy',
    tag: 'Deployments',
    summary: 'Destroys the infrastructure but for the bucket, then releases the name.',
    pathParams: deploymentPath,
    headers: deploymentToken,
    body: { schema: d.destroyRequest, required: false },
    responses: {
      ...commonErrors,
      202: { description: 'Started. Follow `streamURL`.', schema: d.deploymentStarted },
      ...notStarted,
      409: error('`in-progress`: a run of this deployment is in progress.'),
    },
  },
  {
    id: 'unlockDeployment',
    method: 'post',
    path: '/api/v1/deployments/{id}/unlock',
    tag: 'Deployments',
    summary: 'Lifts the state lock that a run of this deployment left. Only on the operator listener.',
    description: 'Call it only if no Terraform of this deployment runs on any machine.',
    pathParams: deploymentPath,
    responses: {
      ...commonErrors,
      200: { description: 'The state is not locked by that lock any more.', schema: d.deploymentUnlocked },
      404: error('`not-found`: no such deployment; or only the operator listener has this path.'),
      409: error('`in-progress`; or `lock-not-recorded`: no run of this deployment is known to have left a lock.'),
      503: error(
        '`provisioning-unavailable`: the state cannot be reached; `database-unavailable`; or `database-read-only`.',
      ),
    },
  },
  {
    id: 'removeDeployment',
    method: 'delete',
    path: '/api/v1/deployments/{id}',
    tag: 'Deployments',
    summary: 'Cancels a run in progress, or deletes a finished deployment of which nothing remains.',
    pathParams: deploymentPath,
    headers: deploymentToken,
    query: d.removeQuery,
    responses: {
      ...commonErrors,
      202: {
        description: 'Being cancelled; it will end as `failed`. With `cancel`, also if its run has ended already.',
        schema: d.deployment,
      },
      204: { description: 'Deleted.' },
      403: error(
        '`token-mismatch`; or `forbidden`: only an operator can abandon infrastructure, or a web page of another origin sent the request.',
      ),
      404: deploymentNotFound,
      409: error('`still-up`: its infrastructure may exist; `in-progress`: an operator is abandoning it.'),
      422: error('`invalid-state`: abandon or cancel must be true or false.'),
      503: databaseUnavailable,
    },
  },
  {
    id: 'followDeployment',
    method: 'get',
    path: '/api/v1/deployments/{id}/logs',
    tag: 'Deployments',
    summary: 'Streams the log as server-sent events: existing lines, new lines, then `event: done`.',
    description:
      'The `id` of an event is the number of its line, and its `data` is a `DeploymentEvent`. The last event is named `done` and has the `Deployment` as `data`. If a stream ends without it, reconnect with `Last-Event-ID`, as an EventSource does.',
    pathParams: deploymentPath,
    headers: z.object({ 'Last-Event-ID': d.lastEventId.optional() }),
    responses: {
      ...commonErrors,
      200: { description: 'The stream.', mediaType: 'text/event-stream', schema: z.string() },
      404: deploymentNotFound,
      422: error('`invalid-cursor`: Last-Event-ID is not the id of an event.'),
      503: error(
        '`provisioning-unavailable`: too many open log streams; `database-unavailable`; or `database-read-only`.',
      ),
    },
  },
  {
    id: 'listBucketClaims',
    method: 'get',
    path: '/api/v1/buckets',
    tag: 'Operator',
    summary: 'Lists the bucket claims, by name of the bucket. Only on the operator listener.',
    query: b.bucketClaimsQuery,
    responses: {
      ...commonErrors,
      404: operatorOnly,
      200: {
        links: {
          lift: { operationId: 'liftBucketClaim', parameters: { 'path.bucket': '$response.body#/buckets/0/bucket' } },
          ...nextPage('listBucketClaims'),
        },
        description: 'A page of claims.',
        schema: b.bucketClaimsResponse,
      },
      422: error('`invalid-limit` or `invalid-cursor`.'),
      503: listUnavailable,
    },
  },
  {
    id: 'liftBucketClaim',
    method: 'delete',
    path: '/api/v1/buckets/{bucket}',
    tag: 'Operator',
    summary: 'Lifts a bucket claim, so that another deployment can derive this bucket. Only on the operator listener.',
    description: 'The bucket itself is not touched: delete it, or make sure that its owner no longer needs it, first.',
    pathParams: z.object({ bucket: z.string() }),
    responses: {
      ...commonErrors,
      204: { description: 'Lifted.' },
      404: error('`not-found`: no claim of this bucket; or only the operator listener has this path.'),
      409: error('`in-progress`: a run uses the bucket; `still-up`: infrastructure that uses the bucket may exist.'),
      503: databaseUnavailable,
    },
  },
  {
    id: 'exportInstallation',
    method: 'get',
    path: '/api/v1/export',
    tag: 'Operator',
    summary: 'Streams the installation as newline-delimited JSON: everything but logs and credentials.',
    description:
      'Only on the operator listener. One line is an `ExportLine`. All rows are of one snapshot. An export without its `end` line is truncated. It holds hashes of tokens, and encrypted tokens for replays: keep it as you keep the database.',
    responses: {
      ...commonErrors,
      404: operatorOnly,
      200: { description: 'The export.', mediaType: 'application/x-ndjson', schema: exportLine },
      503: listUnavailable,
    },
  },
  {
    id: 'importInstallation',
    method: 'post',
    path: '/api/v1/import',
    tag: 'Operator',
    summary: 'Imports an export into an empty database, or the names of one pool into another pool.',
    description:
      'Only on the operator listener. The body is an export; its size is not limited. All or nothing. Without `from`, the database must be empty, and every zone is stopped until `POST /api/v1/pool/{domain}/resume`. With `from` and `to`, the reservations and active names of the pool `from` become names of the managed pool `to`, without history; names that `to` cannot give are skipped and listed.',
    query: importQuery,
    body: { schema: exportLine, required: true, mediaType: 'application/x-ndjson' },
    responses: {
      ...commonErrors,
      404: operatorOnly,
      200: { description: 'What was imported.', schema: importResponse },
      409: error('`not-empty`: the database has rows. Nothing was changed.'),
      422: error(
        '`invalid-import`: not a complete export that this build can read; `invalid-format`; or `unsupported-pool` or `pool-draining`: the target pool gives no names. Nothing was changed.',
      ),
      503: databaseUnavailable,
    },
  },
  ...operatorOperations,
  {
    id: 'createDomainChallenge',
    method: 'post',
    path: '/api/v1/domains/challenge',
    tag: 'Deployments',
    summary: 'Returns the TXT record that proves the control of a domain, for a deployment in mode `byo`.',
    description:
      'Only with `PDM_BYO_PROOF=required` is the record needed. A value proves the domain for one deployment. The value is public as soon as it is in DNS: with an Idempotency-Key, only a deployment that is created under the same key can use it.',
    headers: idempotencyHeader,
    body: { schema: dc.domainChallengeRequest, required: true },
    responses: {
      ...commonErrors,
      201: { description: 'The record to create.', schema: dc.domainChallenge },
      400: invalidJson,
      413: tooLarge,
      422: error('`invalid-fqdn`.'),
      429: error('`too-many-attempts`: too many challenges for this caller; retry after `Retry-After` seconds.'),
      503: databaseUnavailable,
    },
  },
  {
    id: 'checkDomain',
    method: 'post',
    path: '/api/v1/domains/check',
    tag: 'Deployments',
    summary:
      'Returns whether a deployment in mode `byo` can have a domain, and whether its TXT record proves it. Only on the operator listener.',
    description:
      'Looks the TXT record up. Nothing is changed. Send the Idempotency-Key of the challenge: a value that was requested under a key proves the domain under that key only.',
    headers: idempotencyHeader,
    body: { schema: dc.domainChallengeRequest, required: true },
    responses: {
      ...commonErrors,
      200: { description: 'What a deployment that is created now would find.', schema: dc.domainCheck },
      400: invalidJson,
      404: operatorOnly,
      413: tooLarge,
      422: error('`invalid-fqdn`.'),
      503: databaseUnavailable,
    },
  },
  {
    id: 'validateObjectStorageKeys',
    method: 'post',
    path: '/api/v1/credentials/object-storage/validate',
    tag: 'Credentials',
    summary: 'Returns whether the object storage accepts these keys. Read `valid`, not the status.',
    description:
      'Lists the buckets once, within 8 s. Nothing is written or stored. Only a 200 is a result about the keys.',
    body: { schema: validateKeysRequest('').meta({ id: 'ValidateKeysRequest' }), required: true },
    responses: {
      ...commonErrors,
      200: {
        description: 'The provider accepts the keys or rejects them; `message` has the reason.',
        schema: validationResult,
      },
      400: validationError(
        '`invalid-json`, `missing-region`, `invalid-region`, `invalid-access-key`, `invalid-secret-key` or `unsupported-provider`.',
      ),
      413: tooLarge,
      429: tooManyAttempts,
      503: validationError('`object-storage-unavailable`: the keys could not be checked; they may be valid.'),
    },
  },
  {
    id: 'validateToken',
    method: 'post',
    path: '/api/v1/credentials/validate',
    tag: 'Credentials',
    summary: 'Returns whether a provider accepts this API token. Read `valid`, not the status.',
    description: 'Sends one read request with the token, within 8 s. Nothing is written or stored.',
    body: { schema: validateTokenRequest([]).meta({ id: 'ValidateTokenRequest' }), required: true },
    responses: {
      ...commonErrors,
      200: {
        description: 'The provider accepts the token or rejects it; `message` has the reason.',
        schema: validationResult,
      },
      400: validationError('`invalid-json`, `unsupported-provider` or `invalid-token`.'),
      413: tooLarge,
      429: tooManyAttempts,
      503: validationError('`provider-unavailable`: the token could not be checked; it may be valid.'),
    },
  },
  {
    id: 'getHealth',
    method: 'get',
    path: '/healthz',
    tag: 'Health',
    summary: 'Returns whether the service and its database work.',
    responses: {
      ...commonErrors,
      200: { description: 'Both work.', schema: health },
      503: { description: 'The database did not respond within 2 s.', schema: health },
    },
  },
  {
    id: 'getLiveness',
    method: 'get',
    path: '/livez',
    tag: 'Health',
    summary: 'Liveness: the process responds. It does not query the database, so a database outage causes no restarts.',
    responses: { ...commonErrors, 200: { description: 'Alive.', schema: probe } },
  },
  {
    id: 'getReadiness',
    method: 'get',
    path: '/readyz',
    tag: 'Health',
    summary: 'Readiness: this process should receive requests.',
    responses: {
      ...commonErrors,
      200: { description: 'Ready.', schema: probe },
      503: { description: 'Starting, draining before a stop, or the database is unavailable.', schema: probe },
    },
  },
  {
    id: 'getMetrics',
    method: 'get',
    path: '/metrics',
    tag: 'Operator',
    summary: 'Metrics in the Prometheus text format.',
    responses: { ...commonErrors, 200: { description: 'Metrics.', mediaType: 'text/plain', schema: z.string() } },
  },
  {
    id: 'getOpenApiDocument',
    method: 'get',
    path: '/openapi.json',
    tag: 'Description',
    summary: 'The OpenAPI document.',
    responses: { ...commonErrors, 200: { description: 'OpenAPI 3.1.', schema: z.record(z.string(), z.unknown()) } },
  },
  {
    id: 'getApiReference',
    method: 'get',
    path: '/docs',
    tag: 'Description',
    summary: 'The API reference as a web page; it needs no internet access.',
    responses: { ...commonErrors, 200: { description: 'A page.', mediaType: 'text/html', schema: z.string() } },
  },
  {
    id: 'getApiReferenceAsset',
    method: 'get',
    path: '/docs/{asset}',
    tag: 'Description',
    summary: 'A script or a style sheet of the API reference.',
    pathParams: z.object({ asset: z.string().meta({ example: 'swagger-ui.css' }) }),
    responses: {
      ...commonErrors,
      200: { description: 'The file.', mediaType: 'text/*', schema: z.string() },
      404: error('`not-found`: no such file.'),
    },
  },
] as const satisfies readonly Operation[]

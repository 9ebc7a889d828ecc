import * as z from 'zod'
import * as a from './allocation.ts'
import { databaseErrors, defineOperations, pageErrors, pool, poolErrors, zoneErrors } from './allocation-operation.ts'
import { rule } from './allocation-problem.ts'
import * as b from './bucket-claim.ts'
import { validateKeysRequest, validateTokenRequest, validationProblem, validationResult } from './credentials.ts'
import * as d from './deployment.ts'
import * as dh from './deployment-history.ts'
import * as dc from './domain-challenge.ts'
import { subdomain } from './fields.ts'
import { health, probe } from './health.ts'
import { namePlan } from './names.ts'
import { del, get, post } from './operation.ts'
import { operatorOperations } from './operator-operations.ts'
import { tenantOperations } from './tenant-operations.ts'
import { exportLine, importQuery, importResponse } from './transfer.ts'

const deploymentPath = z.object({
  // Ids are stored in lower case; RFC 9562 section 4 allows both cases. Other text is not the id of a deployment.
  id: z
    .string()
    .refine(text => z.uuid().safeParse(text).success, rule('not-found', 'No such deployment.'))
    .overwrite(text => text.toLowerCase())
    .meta({ description: 'A UUID; other values are 404.' }),
})
const deploymentToken = d.deploymentTokenHeader
const deploymentNotFound = ['not-found', 'No such deployment.'] as const
/** Of a request that the client of a deployment sends with its token. */
const ownerErrors = [
  ['token-mismatch', 'In-cluster, X-Deployment-Token must be the token of this deployment.'],
  deploymentNotFound,
  'in-progress',
  ...databaseErrors,
] as const
/** Of a request that runs Terraform. */
const runErrors = [
  'invalid-deployment',
  'too-many-attempts',
  'provisioning-unavailable',
  'object-storage-unavailable',
  ['dns-unavailable', 'The TXT record that proves the domain could not be looked up.'],
] as const
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
/** Clients of these operations read another error shape too. */
const validationErrors = {
  400: { schema: validationProblem },
  429: { schema: validationProblem },
  503: { schema: validationProblem },
} as const

const orphans = {
  pathParams: pool,
  query: a.dryRunQuery,
  body: { schema: a.orphansRequest, required: false },
  results: {
    200: { description: 'The orphans. Without `dryRun`, they are adopted or removed.', schema: a.orphansResponse },
    202: {
      description: 'The zone does not have the result yet; no further request is needed.',
      schema: a.orphansPendingResponse,
    },
  },
  errors: zoneErrors,
} as const

/** The operations for which @pool/client has methods. */
export const callOperations = defineOperations({
  listReservedLabels: get('/api/v1/reserved', {
    tag: 'Allocation',
    summary: 'The labels that no tenant can reserve, sorted.',
    results: { 200: { description: 'The canonical list.', schema: a.reservedList } },
  }),
  checkName: get('/api/v1/pool/{domain}/check', {
    tag: 'Allocation',
    counted: 'check',
    ignoresUnknownQuery: true,
    summary: 'Returns whether a name is free. Read `available`, not the status.',
    description:
      'Looks up the name in the allocation table. DNS is not queried: a wildcard record makes every name resolve.',
    pathParams: pool,
    query: z.object({ sub: z.string().optional().meta({ description: 'The subdomain to look up.', example: 'acme' }) }),
    results: { 200: { description: 'Whether the name is free, and the reason if not.', schema: a.checkResult } },
    errors: databaseErrors,
  }),
  reserveName: post('/api/v1/pool/{domain}/reserve', {
    tag: 'Allocation',
    counted: 'reserve',
    summary: 'Reserves a free name for a limited time.',
    pathParams: pool,
    key: true,
    body: { schema: a.reserveRequest, required: true },
    results: {
      201: {
        links: reservedLinks,
        description: 'Reserved. Only this response contains the token.',
        schema: a.reserveResponse,
      },
    },
    errors: [
      'conflict',
      'cooling-off',
      'pool-draining',
      'reserved',
      'idempotency-key-reused',
      ...poolErrors,
      ...databaseErrors,
    ],
  }),
  commitName: post('/api/v1/pool/{domain}/commit', {
    tag: 'Allocation',
    counted: 'commit',
    summary: 'Activates a reserved name and publishes its records.',
    pathParams: pool,
    key: true,
    body: { schema: a.createCommitRequest({ acceptsLoopback: false }), required: true },
    results: {
      200: { links: committedLinks, description: 'Active, with published records.', schema: a.commitResponse },
      202: {
        links: committedLinks,
        description: 'Active. The records are not published yet; no further request is needed.',
        schema: a.commitPendingResponse,
      },
    },
    errors: [
      'token-mismatch',
      'not-found',
      'already-active',
      ['conflict', 'The request is repeated under its Idempotency-Key, and another client has the name.'],
      'reservation-expired',
      'missing-token',
      'missing-lb-ip',
      'invalid-lb-ip',
      'invalid-lb-hostname',
      'invalid-nameservers',
      'invalid-ds',
      'invalid-target',
      'invalid-fqdn',
      'idempotency-key-reused',
      ...poolErrors,
      ...databaseErrors,
    ],
  }),
  updateName: post('/api/v1/pool/{domain}/update', {
    tag: 'Allocation',
    counted: 'update',
    summary: 'Changes the target of an active name and its records in one write.',
    description:
      'The records are never absent in between. On the operator listener, `reservationToken` may be omitted.',
    pathParams: pool,
    query: a.dryRunQuery,
    key: true,
    plan: namePlan,
    body: { schema: a.createUpdateRequest({ acceptsLoopback: false }, true), required: true },
    results: {
      200: { description: 'Changed, and the records are published.', schema: a.commitResponse },
      202: {
        description: 'Changed. The records are not published yet; no further request is needed.',
        schema: a.commitPendingResponse,
      },
    },
    errors: [
      'token-mismatch',
      'not-found',
      'not-active',
      ['conflict', 'The request is repeated under its Idempotency-Key, and another client has the name.'],
      ['record-conflict', 'The tenant has records of its own where the new target needs a CNAME.'],
      'missing-token',
      'missing-lb-ip',
      'invalid-lb-ip',
      'invalid-lb-hostname',
      'invalid-nameservers',
      'invalid-ds',
      'invalid-target',
      'invalid-fqdn',
      'idempotency-key-reused',
      ...poolErrors,
      ...databaseErrors,
    ],
  }),
  liftCoolOff: del('/api/v1/pool/{domain}/cool-off/{subdomain}', {
    tag: 'Operator',
    listener: 'operator',
    counted: 'lift-cool-off',
    summary: 'Makes a name that is in its cool-off free.',
    pathParams: pool.extend({ subdomain }),
    query: a.dryRunQuery,
    plan: namePlan,
    results: { 204: { description: 'Any client can reserve the name.' } },
    errors: [['not-found', 'The name is not in a cool-off.'], ...poolErrors, ...databaseErrors],
  }),
  renewReservation: post('/api/v1/pool/{domain}/renew', {
    tag: 'Allocation',
    isRepeatable: true,
    counted: 'renew',
    summary: 'Extends a reservation by its full lifetime from now, up to its maximum age.',
    pathParams: pool,
    body: { schema: a.renewRequest, required: true },
    results: {
      200: {
        links: { get: { operationId: 'getAllocation', ...byName('$response.body#') } },
        description: 'Extended.',
        schema: a.reservedAllocation,
      },
    },
    errors: [
      'invalid-idempotency-key',
      'token-mismatch',
      'not-found',
      'already-active',
      'reservation-expired',
      'missing-token',
      ...poolErrors,
      ...databaseErrors,
    ],
  }),
  releaseName: del('/api/v1/pool/{domain}/release', {
    tag: 'Allocation',
    counted: 'release',
    summary: 'Releases a name and deletes its records.',
    description:
      'With PDM_RELEASE_TOKEN=required, the in-cluster listener needs the `reservationToken` of the name, or the `X-Deployment-Token` of the deployment that holds it.',
    pathParams: pool,
    headers: deploymentToken,
    query: z.object({
      sub: subdomain.optional().meta({ description: 'For callers that cannot send a body.' }),
      ...a.dryRunQuery.shape,
    }),
    key: true,
    plan: namePlan,
    body: { schema: a.releaseRequest, required: false },
    results: {
      200: {
        links: { liftCoolOff: { operationId: 'liftCoolOff', ...byName('$response.body#/freed') } },
        description: 'Released, and its records are deleted.',
        schema: a.releaseResponse,
      },
      202: {
        description: 'Released. Some records are not deleted yet; no further request is needed.',
        schema: a.releasePendingResponse,
      },
    },
    errors: [
      ['token-mismatch', 'The token is not that of the name. It is missing, and PDM_RELEASE_TOKEN requires it.'],
      'not-found',
      'idempotency-key-reused',
      ...poolErrors,
      ...databaseErrors,
    ],
  }),
  getAllocation: get('/api/v1/pool/{domain}/allocations/{subdomain}', {
    tag: 'Allocation',
    summary: 'Returns one allocation with the status of its records. Poll it after a 202.',
    pathParams: pool.extend({ subdomain }),
    results: { 200: { description: 'The allocation.', schema: a.allocation } },
    errors: ['not-found', ...poolErrors, ...databaseErrors],
  }),
  listAllocations: get('/api/v1/pool/{domain}/list', {
    tag: 'Allocation',
    listener: 'list',
    counted: 'list',
    summary: 'Lists the allocations of a pool, sorted by subdomain.',
    description:
      'The response is streamed in constant memory; the connection of a client that reads nothing for a minute is closed. Each page is a separate read, so the list is not one snapshot.',
    pathParams: pool,
    query: a.listQuery,
    results: {
      200: {
        links: {
          get: { operationId: 'getAllocation', ...byName('$response.body#/allocations/0') },
          ...nextPage('listAllocations', 'domain'),
        },
        description: 'The allocations.',
        schema: a.listResponse,
      },
    },
    errors: ['unsupported-pool', 'invalid-state', ...pageErrors],
  }),
  readHistory: get('/api/v1/pool/{domain}/history', {
    tag: 'Allocation',
    listener: 'list',
    counted: 'history',
    summary: 'Lists the transitions of a pool, or of one name with `sub`; newest first.',
    pathParams: pool,
    query: a.historyQuery,
    results: {
      200: { links: nextPage('readHistory', 'domain'), description: 'The transitions.', schema: a.historyResponse },
    },
    errors: [...pageErrors, ...poolErrors],
  }),
  convergeZone: post('/api/v1/pool/{domain}/converge', {
    tag: 'Operator',
    listener: 'operator',
    isRepeatable: true,
    counted: 'converge',
    summary: 'Compares a zone with its desired records and repairs it, or lists the changes only.',
    description: 'Waits a bounded time for the repair, and retries failed names immediately.',
    pathParams: pool,
    query: a.dryRunQuery,
    results: {
      200: {
        description: 'The differences. Without `dryRun`, all are repaired.',
        schema: a.convergeResponse,
      },
      202: {
        description: 'Some names do not have their desired records yet; no further request is needed.',
        schema: a.convergePendingResponse,
      },
    },
    errors: zoneErrors,
  }),
  republishZone: post('/api/v1/pool/{domain}/republish', {
    tag: 'Operator',
    listener: 'operator',
    isRepeatable: true,
    counted: 'republish',
    summary: 'Brings the records of the active names to the current template, or lists the changes only.',
    description:
      'The template is the configured record names and TTL. Waits a bounded time for the records. Repeating it changes nothing.',
    pathParams: pool,
    query: a.dryRunQuery,
    results: {
      200: {
        description: 'The changes. Without `dryRun`, all are published.',
        schema: a.republishResponse,
      },
      202: {
        description: 'Some names do not have their desired records yet; no further request is needed.',
        schema: a.republishPendingResponse,
      },
    },
    errors: [...zoneErrors, ['dns-unavailable', 'Some names may not be changed yet: repeat the request.']],
  }),
  resumeZone: post('/api/v1/pool/{domain}/resume', {
    tag: 'Operator',
    listener: 'operator',
    counted: 'resume',
    summary:
      'Starts the writes to a stopped zone again, with the database or the zone as the truth, or lists the differences only.',
    description:
      'A zone is stopped if the database is older than its last write, if another database wrote it, or after an import. If the call is interrupted, the zone stays stopped, and a repetition does the rest.',
    pathParams: pool,
    query: a.dryRunQuery,
    body: { schema: a.resumeRequest, required: true },
    results: {
      200: { description: 'The differences. Without `dryRun`, all are settled.', schema: a.resumeResponse },
      202: {
        description: 'The zone is written again; some names do not have their desired records yet.',
        schema: a.resumePendingResponse,
      },
    },
    errors: ['not-stopped', 'dns-writes-off', ...zoneErrors],
  }),
  listFormerRecords: get('/api/v1/pool/{domain}/former-records', {
    tag: 'Operator',
    listener: 'operator',
    counted: 'list-former-records',
    summary: 'Lists the records that an earlier DNS provider has from before a move, for removal there.',
    description: 'The list of a provider ends when the zone moves back to it.',
    pathParams: pool,
    query: a.formerRecordsQuery,
    results: {
      200: {
        links: nextPage('listFormerRecords', 'domain'),
        description: 'The record sets.',
        schema: a.formerRecordsResponse,
      },
    },
    errors: ['invalid-cursor', 'unsupported-pool', ...databaseErrors],
  }),
  adoptOrphans: post('/api/v1/pool/{domain}/orphans/adopt', {
    tag: 'Operator',
    listener: 'operator',
    isRepeatable: true,
    counted: 'adopt-orphans',
    summary:
      'Makes allocations of the records that match the template and that no allocation explains, or lists them only.',
    description:
      'The address and the records of an adopted name are those that the zone has. No client has its token; a reservation or cool-off of the name ends. An active name is left out. Repeating it changes nothing.',
    ...orphans,
  }),
  removeOrphans: post('/api/v1/pool/{domain}/orphans/remove', {
    tag: 'Operator',
    listener: 'operator',
    isRepeatable: true,
    counted: 'remove-orphans',
    summary:
      'Deletes the records at and below the names whose records match the template and that no allocation explains, or lists them only.',
    description:
      'As after a release, every record set at or below the name is deleted, whichever client created it; the history lists them. Waits a bounded time for it. Repeating it changes nothing.',
    ...orphans,
  }),
  ...tenantOperations,
  createDeployment: post('/api/v1/deployments', {
    tag: 'Deployments',
    counted: 'create-deployment',
    summary: 'Reserves the name, derives the bucket and starts provisioning.',
    key: true,
    body: { schema: d.deploymentRequest, required: true },
    results: {
      201: {
        links: createdLinks,
        description: 'Started; `Location` is its URL. Follow `streamURL`.',
        schema: d.deploymentCreated,
      },
    },
    errors: [
      ...runErrors,
      'subdomain-conflict',
      'fqdn-conflict',
      'bucket-conflict',
      'bucket-exists',
      'fqdn-remains',
      'domain-not-proven',
      'idempotency-key-reused',
      'database-unavailable',
    ],
  }),
  listDeployments: get('/api/v1/deployments', {
    tag: 'Deployments',
    listener: 'list',
    counted: 'list-deployments',
    summary: 'Lists the deployments, newest first.',
    query: d.deploymentsQuery,
    results: {
      200: {
        links: {
          get: { operationId: 'getDeployment', parameters: { 'path.id': '$response.body#/deployments/0/id' } },
          ...nextPage('listDeployments'),
        },
        description: 'A page of deployments.',
        schema: d.deploymentsResponse,
      },
    },
    errors: ['invalid-state', 'invalid-format', ...pageErrors],
  }),
  readDeploymentHistory: get('/api/v1/deployments/history', {
    tag: 'Deployments',
    listener: 'operator',
    counted: 'deployment-history',
    summary: 'Lists what was done to deployments, who did it and from where; newest first.',
    description: 'Entries outlive their deployments.',
    query: dh.deploymentHistoryQuery,
    results: {
      200: {
        links: nextPage('readDeploymentHistory'),
        description: 'A page of entries.',
        schema: dh.deploymentHistoryResponse,
      },
    },
    errors: ['invalid-format', ...pageErrors],
  }),
  getDeployment: get('/api/v1/deployments/{id}', {
    tag: 'Deployments',
    counted: 'get-deployment',
    summary: 'Returns one deployment, without its credentials.',
    pathParams: deploymentPath,
    results: { 200: { description: 'The deployment.', schema: d.deployment } },
    errors: [deploymentNotFound, ...databaseErrors],
  }),
  applyDeployment: post('/api/v1/deployments/{id}/apply', {
    tag: 'Deployments',
    counted: 'apply-deployment',
    summary: 'Applies the current module again, also with new input: resumes, updates or reinstalls.',
    pathParams: deploymentPath,
    key: true,
    headers: deploymentToken,
    body: { schema: d.applyRequest, required: false },
    results: { 202: { description: 'Started. Follow `streamURL`.', schema: d.deploymentStarted } },
    errors: [
      'idempotency-key-reused',
      ...ownerErrors,
      ...runErrors,
      'destroy-incomplete',
      'subdomain-conflict',
      'fqdn-conflict',
      'fqdn-remains',
      'bucket-conflict',
      'bucket-exists',
      'domain-not-proven',
    ],
  }),
  planDeployment: post('/api/v1/deployments/{id}/plan', {
    tag: 'Deployments',
    counted: 'plan-deployment',
    summary: 'Returns what an apply or a destroy would do. Changes nothing.',
    description:
      'After 15 s, the response begins with status 200 and white space, of which more follows every 15 s, so that no proxy closes the connection. If the plan fails after that, the body has `problem`.',
    pathParams: deploymentPath,
    headers: deploymentToken,
    body: { schema: d.planRequest, required: false },
    results: { 200: { description: 'The plan.', schema: d.deploymentPlan } },
    errors: [...ownerErrors, ...runErrors, 'destroy-incomplete', 'plan-failed'],
  }),
  destroyDeployment: post('/api/v1/deployments/{id}/destroy', {
    tag: 'Deployments',
    counted: 'destroy-deployment',
    summary: 'Destroys the infrastructure but for the bucket, then releases the name.',
    pathParams: deploymentPath,
    key: true,
    headers: deploymentToken,
    body: { schema: d.destroyRequest, required: false },
    results: { 202: { description: 'Started. Follow `streamURL`.', schema: d.deploymentStarted } },
    errors: [...ownerErrors, ...runErrors, 'idempotency-key-reused'],
  }),
  unlockDeployment: post('/api/v1/deployments/{id}/unlock', {
    tag: 'Deployments',
    listener: 'operator',
    counted: 'unlock-deployment',
    summary: 'Lifts the state lock that a run of this deployment left.',
    description: 'Call it only if no Terraform of this deployment runs on any machine.',
    pathParams: deploymentPath,
    key: true,
    results: { 200: { description: 'The state is not locked by that lock any more.', schema: d.deploymentUnlocked } },
    errors: [
      'idempotency-key-reused',
      deploymentNotFound,
      'in-progress',
      'lock-not-recorded',
      ['provisioning-unavailable', 'The state cannot be reached.'],
      ...databaseErrors,
    ],
  }),
  removeDeployment: del('/api/v1/deployments/{id}', {
    tag: 'Deployments',
    counted: 'remove-deployment',
    summary: 'Cancels a run in progress, or deletes a finished deployment of which nothing remains.',
    pathParams: deploymentPath,
    key: true,
    headers: deploymentToken,
    query: d.removeQuery,
    results: {
      202: {
        description: 'Being cancelled; it will end as `failed`. With `cancel`, also if its run has ended already.',
        schema: d.deployment,
      },
      204: { description: 'Deleted.' },
    },
    errors: [
      'idempotency-key-reused',
      ...ownerErrors,
      ['forbidden', 'Only an operator can abandon infrastructure.'],
      ['provisioning-unavailable', 'The state of abandoned infrastructure cannot be kept. Repeat the call.'],
      'still-up',
      'invalid-state',
    ],
  }),
  followDeployment: get('/api/v1/deployments/{id}/logs', {
    tag: 'Deployments',
    counted: 'follow-deployment',
    summary: 'Streams the log as server-sent events: existing lines, new lines, then `event: done`.',
    description:
      'The `id` of an event is the number of its line, and its `data` is a `DeploymentEvent`. The last event is named `done` and has the `Deployment` as `data`. If a stream ends without it, reconnect with `Last-Event-ID`, as an EventSource does.',
    pathParams: deploymentPath,
    headers: z.object({ 'Last-Event-ID': d.lastEventId.optional() }),
    results: { 200: { description: 'The stream.', mediaType: 'text/event-stream', schema: z.string() } },
    errors: [
      deploymentNotFound,
      ['invalid-cursor', 'Last-Event-ID is not the id of an event.'],
      ['provisioning-unavailable', 'Too many open log streams.'],
      ...databaseErrors,
    ],
  }),
  listBucketClaims: get('/api/v1/buckets', {
    tag: 'Operator',
    listener: 'operator',
    counted: 'list-bucket-claims',
    summary: 'Lists the bucket claims, by name of the bucket.',
    query: b.bucketClaimsQuery,
    results: {
      200: {
        links: {
          lift: { operationId: 'liftBucketClaim', parameters: { 'path.bucket': '$response.body#/buckets/0/bucket' } },
          ...nextPage('listBucketClaims'),
        },
        description: 'A page of claims.',
        schema: b.bucketClaimsResponse,
      },
    },
    errors: pageErrors,
  }),
  liftBucketClaim: del('/api/v1/buckets/{bucket}', {
    tag: 'Operator',
    listener: 'operator',
    counted: 'lift-bucket-claim',
    summary: 'Lifts a bucket claim, so that another deployment can derive this bucket.',
    description: 'The bucket itself is not touched: delete it, or make sure that its owner no longer needs it, first.',
    pathParams: z.object({ bucket: z.string() }),
    results: { 204: { description: 'Lifted.' } },
    errors: [
      ['not-found', 'No claim of this bucket.'],
      ['in-progress', 'A run uses the bucket.'],
      ['still-up', 'Infrastructure that uses the bucket may exist.'],
      ...databaseErrors,
    ],
  }),
  exportInstallation: get('/api/v1/export', {
    tag: 'Operator',
    listener: 'operator',
    counted: 'export',
    summary: 'Streams the installation as newline-delimited JSON: everything but logs and credentials.',
    description:
      'One line is an `ExportLine`. All rows are of one snapshot. An export without its `end` line is truncated. It holds hashes of tokens, and encrypted tokens for replays: keep it as you keep the database.',
    results: { 200: { description: 'The export.', mediaType: 'application/x-ndjson', schema: exportLine } },
    errors: ['too-many-readers', 'database-unavailable'],
  }),
  importInstallation: post('/api/v1/import', {
    tag: 'Operator',
    listener: 'operator',
    counted: 'import',
    summary: 'Imports an export into an empty database, or the names of one pool into another pool.',
    description:
      'The body is an export; its size is not limited. All or nothing. Without `from`, the database must be empty, and every zone is stopped until `POST /api/v1/pool/{domain}/resume`. With `from` and `to`, the reservations and active names of the pool `from` become names of the managed pool `to`, without history; names that `to` cannot give are skipped and listed.',
    query: importQuery,
    body: { schema: exportLine, required: true, mediaType: 'application/x-ndjson' },
    results: { 200: { description: 'What was imported.', schema: importResponse } },
    errors: ['not-empty', 'invalid-import', 'pool-draining', ...poolErrors, ...databaseErrors],
  }),
  ...operatorOperations,
  createDomainChallenge: post('/api/v1/domains/challenge', {
    tag: 'Deployments',
    counted: 'challenge-domain',
    summary: 'Returns the TXT record that proves the control of a domain, for a deployment in mode `byo`.',
    description:
      'Only with `PDM_BYO_PROOF=required` is the record needed. A value proves the domain for one deployment. The value is public as soon as it is in DNS: with an Idempotency-Key, only a deployment that is created under the same key can use it.',
    key: true,
    body: { schema: dc.domainChallengeRequest, required: true },
    results: { 201: { description: 'The record to create.', schema: dc.domainChallenge } },
    errors: ['invalid-fqdn', 'too-many-attempts', ...databaseErrors],
  }),
  checkDomain: post('/api/v1/domains/check', {
    tag: 'Deployments',
    listener: 'operator',
    isRead: true,
    counted: 'check-domain',
    summary: 'Returns whether a deployment in mode `byo` can have a domain, and whether its TXT record proves it.',
    description:
      'Looks the TXT record up. Nothing is changed. Send the Idempotency-Key of the challenge: a value that was requested under a key proves the domain under that key only.',
    key: true,
    body: { schema: dc.domainChallengeRequest, required: true },
    results: { 200: { description: 'What a deployment that is created now would find.', schema: dc.domainCheck } },
    errors: ['invalid-fqdn', ...databaseErrors],
  }),
  validateObjectStorageKeys: post('/api/v1/credentials/object-storage/validate', {
    tag: 'Credentials',
    isRead: true,
    counted: 'validate-keys',
    summary: 'Returns whether the object storage accepts these keys. Read `valid`, not the status.',
    description:
      'Lists the buckets once, within 8 s. Nothing is written or stored. Only a 200 is a result about the keys.',
    body: { schema: validateKeysRequest('').meta({ id: 'ValidateKeysRequest' }), required: true },
    results: {
      200: {
        description: 'The provider accepts the keys or rejects them; `message` has the reason.',
        schema: validationResult,
      },
    },
    errors: [
      'missing-region',
      'invalid-region',
      'invalid-access-key',
      'invalid-secret-key',
      'unsupported-provider',
      'too-many-attempts',
      'object-storage-unavailable',
    ],
    errorResponses: validationErrors,
  }),
  validateToken: post('/api/v1/credentials/validate', {
    tag: 'Credentials',
    isRead: true,
    counted: 'validate-token',
    summary: 'Returns whether a provider accepts this API token. Read `valid`, not the status.',
    description: 'Sends one read request with the token, within 8 s. Nothing is written or stored.',
    body: { schema: validateTokenRequest([]).meta({ id: 'ValidateTokenRequest' }), required: true },
    results: {
      200: {
        description: 'The provider accepts the token or rejects it; `message` has the reason.',
        schema: validationResult,
      },
    },
    errors: ['unsupported-provider', 'invalid-token', 'too-many-attempts', 'provider-unavailable'],
    errorResponses: validationErrors,
  }),
  getHealth: get('/healthz', {
    tag: 'Health',
    ignoresUnknownQuery: true,
    summary: 'Returns whether the service and its database work.',
    results: {
      200: { description: 'Both work.', schema: health },
      503: { description: 'The database did not respond within 2 s.', schema: health },
    },
  }),
  getLiveness: get('/livez', {
    tag: 'Health',
    ignoresUnknownQuery: true,
    summary: 'Liveness: the process responds. It does not query the database, so a database outage causes no restarts.',
    results: { 200: { description: 'Alive.', schema: probe } },
  }),
  getReadiness: get('/readyz', {
    tag: 'Health',
    ignoresUnknownQuery: true,
    summary: 'Readiness: this process should receive requests.',
    results: {
      200: { description: 'Ready.', schema: probe },
      503: { description: 'Starting, draining before a stop, or the database is unavailable.', schema: probe },
    },
  }),
  getMetrics: get('/metrics', {
    tag: 'Health',
    summary: 'Metrics in the Prometheus text format.',
    results: { 200: { description: 'Metrics.', mediaType: 'text/plain', schema: z.string() } },
  }),
  getOpenApiDocument: get('/openapi.json', {
    tag: 'Description',
    ignoresUnknownQuery: true,
    summary: 'The OpenAPI document.',
    results: { 200: { description: 'OpenAPI 3.1.', schema: z.record(z.string(), z.unknown()) } },
    errors: ['too-many-readers'],
  }),
  getApiReference: get('/docs', {
    tag: 'Description',
    ignoresUnknownQuery: true,
    summary: 'The API reference as a web page; it needs no internet access.',
    results: { 200: { description: 'A page.', mediaType: 'text/html', schema: z.string() } },
  }),
  getApiReferenceAsset: get('/docs/{asset}', {
    tag: 'Description',
    ignoresUnknownQuery: true,
    summary: 'A script or a style sheet of the API reference.',
    pathParams: z.object({ asset: z.string().meta({ example: 'swagger-ui.css' }) }),
    results: { 200: { description: 'The file.', mediaType: 'text/*', schema: z.string() } },
    errors: [['not-found', 'No such file.'], 'too-many-readers'],
  }),
})

export type CallId = keyof typeof callOperations

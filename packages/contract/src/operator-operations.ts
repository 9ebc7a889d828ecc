import * as z from 'zod'
import {
  commonErrors,
  databaseUnavailable,
  error,
  fromOtherPage,
  listUnavailable,
  operatorOnly,
  pool,
  tooLarge,
} from './common-responses.ts'
import { subdomain } from './fields.ts'
import { leaseHistory, leaseList, leaseStatusList } from './lease.ts'
import * as n from './names.ts'
import type { Operation } from './operation.ts'
import * as v from './operator-view.ts'

const namePath = pool.extend({ subdomain })
const sessionErrors = { ...commonErrors, 404: operatorOnly, 503: databaseUnavailable }
const witnessErrors = {
  ...commonErrors,
  404: error('`not-found`: `PDM_WITNESS_URL` is not set; or only the operator listener has this path.'),
  503: error('`witness-unavailable`: the witness did not respond, or it rejects the token of this service.'),
}
const zoneUnavailable = error(
  '`dns-unavailable`: the DNS provider did not respond, or its circuit is open; or `database-unavailable`.',
)

/** The operations that the console needs beyond those of other clients. Only the operator listener has them. */
export const operatorOperations = [
  {
    id: 'startSession',
    method: 'post',
    path: '/api/v1/session',
    tag: 'Operator',
    summary: 'Exchanges an operator token for a session cookie, for a browser.',
    description:
      'The cookie is `HttpOnly` and `SameSite=Strict`, and replaces the token in later requests, to any replica. Requests that change something are accepted with it only from pages of this origin. The session ends when its token is removed from the configuration.',
    body: { schema: v.sessionRequest, required: true },
    responses: {
      ...sessionErrors,
      201: {
        description: 'The session has started.',
        schema: v.operatorSession,
        headers: { 'Set-Cookie': 'The id of the session.' },
      },
      400: error('`invalid-json`: the body is not JSON.'),
      401: error('`unauthorized`: not an operator token.'),
      413: tooLarge,
      422: error('`missing-token`.'),
      429: error('`too-many-attempts`: too many attempts of this caller; retry after `Retry-After` seconds.'),
    },
    isPublic: true,
  },
  {
    id: 'getSession',
    method: 'get',
    path: '/api/v1/session',
    tag: 'Operator',
    summary: 'Returns the session of the request.',
    responses: {
      ...sessionErrors,
      200: { description: 'The session.', schema: v.operatorSession },
      404: error(
        '`not-found`: the request has a token instead of a session; or only the operator listener has this path.',
      ),
    },
  },
  {
    id: 'endSession',
    method: 'delete',
    path: '/api/v1/session',
    tag: 'Operator',
    summary: 'Ends the session of the request and removes its cookie.',
    responses: { ...sessionErrors, 204: { description: 'The session has ended, or the request had none.' } },
  },
  {
    id: 'getSettings',
    method: 'get',
    path: '/api/v1/settings',
    tag: 'Operator',
    summary: 'Returns what a client needs to know of the configuration; no secret. Only on the operator listener.',
    responses: {
      ...commonErrors,
      404: operatorOnly,
      200: { description: 'The settings of this replica.', schema: v.serviceSettings },
    },
  },
  {
    id: 'searchNames',
    method: 'get',
    path: '/api/v1/names',
    tag: 'Operator',
    summary: 'Searches the names that are not free, in all pools. Only on the operator listener.',
    description:
      'With several conditions, all of them must hold. Each page takes bounded time: it can have fewer names than `limit` although others follow. Sorted by pool and name; with `address` or `createdBy`, first by these. A name that exists throughout is listed exactly once.',
    query: n.namesQuery,
    responses: {
      ...commonErrors,
      404: operatorOnly,
      200: {
        description: 'A page of names.',
        schema: n.namesResponse,
        links: {
          nextPage: { operationId: 'searchNames', parameters: { 'query.cursor': '$response.body#/nextCursor' } },
        },
      },
      422: error('`invalid-format`, `invalid-state`, `invalid-limit` or `invalid-cursor`.'),
      503: listUnavailable,
    },
  },
  {
    id: 'describeName',
    method: 'get',
    path: '/api/v1/pool/{domain}/names/{subdomain}',
    tag: 'Operator',
    summary:
      'Returns a name with its desired records and its deployment, even if it is free. Only on the operator listener.',
    pathParams: namePath,
    responses: {
      ...commonErrors,
      404: operatorOnly,
      200: { description: 'The name.', schema: n.nameDetails },
      422: error('`invalid-format` or `unsupported-pool`.'),
      503: databaseUnavailable,
    },
  },
  {
    id: 'compareNameRecords',
    method: 'get',
    path: '/api/v1/pool/{domain}/names/{subdomain}/records',
    tag: 'Operator',
    summary:
      'Reads the records of a name from the zone and compares them with the desired ones. Only on the operator listener.',
    pathParams: namePath,
    responses: {
      ...commonErrors,
      404: operatorOnly,
      200: { description: 'The records of both.', schema: n.nameRecords },
      422: error('`invalid-format` or `unsupported-pool`.'),
      503: zoneUnavailable,
    },
  },
  {
    id: 'planNameAction',
    method: 'get',
    path: '/api/v1/pool/{domain}/names/{subdomain}/plan',
    tag: 'Operator',
    summary: 'Returns what a release, an update or the lift of a cool-off would do. Only on the operator listener.',
    description: 'Changes nothing. The name and the zone can change before the action.',
    pathParams: namePath,
    query: n.namePlanQuery,
    responses: {
      ...commonErrors,
      200: { description: 'The plan.', schema: n.namePlan },
      404: error(
        '`not-found`: the name is free, or not in a cool-off to lift; or only the operator listener has this path.',
      ),
      409: error('`not-active`: the name is not active, so it has no address to update.'),
      422: error('`invalid-format`, `missing-lb-ip`, `invalid-lb-ip` or `unsupported-pool`.'),
      503: databaseUnavailable,
    },
  },
  {
    id: 'listZones',
    method: 'get',
    path: '/api/v1/zones',
    tag: 'Operator',
    summary: 'Lists the zones with their health. Only on the operator listener.',
    responses: {
      ...commonErrors,
      404: operatorOnly,
      200: { description: 'Every zone.', schema: v.zonesResponse },
      503: databaseUnavailable,
    },
  },
  {
    id: 'readOverview',
    method: 'get',
    path: '/api/v1/overview',
    tag: 'Operator',
    summary: 'Returns series of the last week at most, for small plots. Only on the operator listener.',
    query: v.overviewQuery,
    responses: {
      ...commonErrors,
      404: operatorOnly,
      200: { description: 'The series.', schema: v.overview },
      422: error('`invalid-limit`.'),
      503: databaseUnavailable,
    },
  },
  {
    id: 'followChanges',
    method: 'get',
    path: '/api/v1/changes',
    tag: 'Operator',
    summary: 'Streams what has changed, as server-sent events. Only on the operator listener.',
    description:
      'The `data` of an event is a `ChangeEvent`: read again what it names. The stream ends after some minutes: reconnect with `Last-Event-ID`, as an EventSource does; the first event then names what has changed since. Without it, the first event names everything.',
    headers: z.object({
      'Last-Event-ID': z.string().optional().meta({ description: 'The `id` of the last event.' }),
    }),
    responses: {
      ...commonErrors,
      404: operatorOnly,
      200: { description: 'The stream.', mediaType: 'text/event-stream', schema: z.string() },
      503: listUnavailable,
    },
  },
  {
    id: 'listWitnessLeases',
    method: 'get',
    path: '/api/v1/leases',
    tag: 'Operator',
    summary: 'Lists leases of the configured witness, or reads those of named slots. Only on the operator listener.',
    description: 'As `GET /leases` of the witness. Its token does not leave this service.',
    query: v.witnessLeasesQuery,
    responses: {
      ...witnessErrors,
      200: {
        description: 'As the witness responded.',
        schema: z.discriminatedUnion('consistency', [leaseList, leaseStatusList]).meta({ id: 'LeaseListResponse' }),
      },
      422: error('`invalid-format`, `invalid-limit` or `invalid-cursor`.'),
    },
  },
  {
    id: 'readWitnessHistory',
    method: 'get',
    path: '/api/v1/leases/history',
    tag: 'Operator',
    summary: 'Lists the last changes of the holder of a slot, newest first. Only on the operator listener.',
    query: v.witnessHistoryQuery,
    responses: {
      ...witnessErrors,
      200: { description: 'The transitions.', schema: leaseHistory },
      404: error(
        '`not-found`: the slot was never written; `PDM_WITNESS_URL` is not set; or only the operator listener has this path.',
      ),
      422: error('`invalid-format`.'),
    },
  },
  {
    id: 'releaseWitnessLease',
    method: 'post',
    path: '/api/v1/leases/release',
    tag: 'Operator',
    summary: 'Releases the lease of a holder that is dead. Only on the operator listener.',
    description:
      'Make sure first that the holder is dead: if it runs, two processes act as holders until it notices. Only the lease with this holder and this generation is released.',
    body: { schema: v.witnessReleaseRequest, required: true },
    responses: {
      ...witnessErrors,
      204: { description: 'Released, or there was nothing to release.' },
      400: error('`invalid-json`: the body is not JSON.'),
      403: error(`${fromOtherPage.replace(/\.$/, '')}; or the policy of the witness does not permit the release.`),
      409: error('`lease-changed`: the lease has another holder or generation now; read it again.'),
      413: tooLarge,
      422: error('`invalid-format`.'),
    },
  },
] as const satisfies readonly Operation[]

import * as z from 'zod'
import { type AllocationOperationSpec, databaseErrors, pageErrors, pool, poolErrors } from './allocation-operation.ts'
import { subdomain } from './fields.ts'
import { leaseHistory, leaseList, leaseStatusList } from './lease.ts'
import * as n from './names.ts'
import { del, get, post } from './operation.ts'
import * as v from './operator-view.ts'

const namePath = pool.extend({ subdomain })
const witnessErrors = [['not-found', 'PDM_WITNESS_URL is not set.'], 'witness-unavailable'] as const

/** The operations that the console needs beyond those of other clients. Only the operator listener has them. */
export const operatorOperations = {
  startSession: post('/api/v1/session', {
    tag: 'Console',
    listener: 'operator',
    counted: 'start-session',
    summary: 'Exchanges an operator token, or a sign-in code of `start`, for a session cookie, for a browser.',
    description:
      'The cookie is `HttpOnly` and `SameSite=Strict`, and replaces the token in later requests, to any replica. Requests that change something are accepted with it only from pages of this origin. The session ends when its token is removed from the configuration.',
    body: { schema: v.sessionRequest, required: true },
    results: {
      201: {
        description: 'The session has started.',
        schema: v.operatorSession,
        headers: { 'Set-Cookie': 'The id of the session.' },
      },
    },
    errors: [
      ['unauthorized', 'This is neither an operator token nor a sign-in code that can still be used.'],
      'missing-token',
      'too-many-attempts',
      ...databaseErrors,
    ],
    isPublic: true,
  }),
  getSession: get('/api/v1/session', {
    tag: 'Console',
    listener: 'operator',
    summary: 'Returns the session of the request.',
    results: { 200: { description: 'The session.', schema: v.operatorSession } },
    errors: [['not-found', 'The request has a token instead of a session.'], ...databaseErrors],
  }),
  endSession: del('/api/v1/session', {
    tag: 'Console',
    listener: 'operator',
    isRepeatable: true,
    counted: 'end-session',
    summary: 'Ends the session of the request and removes its cookie.',
    results: { 204: { description: 'The session has ended, or the request had none.' } },
    errors: databaseErrors,
  }),
  getSettings: get('/api/v1/settings', {
    tag: 'Console',
    listener: 'operator',
    summary: 'Returns what a client needs to know of the configuration; no secret.',
    results: { 200: { description: 'The settings of this replica.', schema: v.serviceSettings } },
  }),
  searchNames: get('/api/v1/names', {
    tag: 'Console',
    listener: 'operator',
    counted: 'search-names',
    summary: 'Searches the names that are not free, in all pools.',
    description:
      'With several conditions, all of them must hold. Each page takes bounded time: it can have fewer names than `limit` although others follow. Sorted by pool and name; with `address` or `createdBy`, first by these. A name that exists throughout is listed exactly once.',
    query: n.namesQuery,
    results: {
      200: {
        description: 'A page of names.',
        schema: n.namesResponse,
        links: {
          nextPage: { operationId: 'searchNames', parameters: { 'query.cursor': '$response.body#/nextCursor' } },
        },
      },
    },
    errors: ['invalid-format', 'invalid-state', ...pageErrors],
  }),
  describeName: get('/api/v1/pool/{domain}/names/{subdomain}', {
    tag: 'Console',
    listener: 'operator',
    summary: 'Returns a name with its desired records and its deployment, even if it is free.',
    pathParams: namePath,
    results: { 200: { description: 'The name.', schema: n.nameDetails } },
    errors: [...poolErrors, ...databaseErrors],
  }),
  compareNameRecords: get('/api/v1/pool/{domain}/names/{subdomain}/records', {
    tag: 'Console',
    listener: 'operator',
    counted: 'compare-name-records',
    summary: 'Reads the records of a name from the zone and compares them with the desired ones.',
    pathParams: namePath,
    results: { 200: { description: 'The records of both.', schema: n.nameRecords } },
    errors: ['dns-unavailable', 'database-unavailable', ...poolErrors],
  }),
  listZones: get('/api/v1/zones', {
    tag: 'Console',
    listener: 'operator',
    summary: 'Lists the zones with their health.',
    results: { 200: { description: 'Every zone.', schema: v.zonesResponse } },
    errors: databaseErrors,
  }),
  readOverview: get('/api/v1/overview', {
    tag: 'Console',
    listener: 'operator',
    summary: 'Returns series of the last week at most, for small plots.',
    query: v.overviewQuery,
    results: { 200: { description: 'The series.', schema: v.overview } },
    errors: ['invalid-limit', ...databaseErrors],
  }),
  followChanges: get('/api/v1/changes', {
    tag: 'Console',
    listener: 'operator',
    summary: 'Streams what has changed, as server-sent events.',
    description:
      'The `data` of an event is a `ChangeEvent`: read again what it names. The stream ends after some minutes: reconnect with `Last-Event-ID`, as an EventSource does; the first event then names what has changed since. Without it, the first event names everything.',
    headers: z.object({
      'Last-Event-ID': z.string().optional().meta({ description: 'The `id` of the last event.' }),
    }),
    results: { 200: { description: 'The stream.', mediaType: 'text/event-stream', schema: z.string() } },
    errors: ['too-many-readers', 'database-unavailable'],
  }),
  listWitnessLeases: get('/api/v1/leases', {
    tag: 'Console',
    listener: 'operator',
    summary: 'Lists leases of the configured witness, or reads those of named slots.',
    description: 'As `GET /leases` of the witness. Its token does not leave this service.',
    query: v.witnessLeasesQuery,
    results: {
      200: {
        description: 'As the witness responded.',
        schema: z.discriminatedUnion('consistency', [leaseList, leaseStatusList]).meta({ id: 'LeaseListResponse' }),
      },
    },
    errors: ['invalid-format', 'invalid-limit', 'invalid-cursor', ...witnessErrors],
  }),
  readWitnessHistory: get('/api/v1/leases/history', {
    tag: 'Console',
    listener: 'operator',
    summary: 'Lists the last changes of the holder of a slot, newest first.',
    query: v.witnessHistoryQuery,
    results: { 200: { description: 'The transitions.', schema: leaseHistory } },
    errors: [['not-found', 'The slot was never written.'], 'invalid-format', ...witnessErrors],
  }),
  releaseWitnessLease: post('/api/v1/leases/release', {
    tag: 'Console',
    listener: 'operator',
    counted: 'release-lease',
    summary: 'Releases the lease of a holder that is dead.',
    description:
      'Make sure first that the holder is dead: if it runs, two processes act as holders until it notices. Only the lease with this holder and this generation is released.',
    body: { schema: v.witnessReleaseRequest, required: true },
    results: { 204: { description: 'Released, or there was nothing to release.' } },
    errors: [
      ['forbidden', 'The policy of the witness does not permit the release.'],
      'lease-changed',
      'invalid-format',
      ...witnessErrors,
    ],
  }),
} as const satisfies Readonly<Record<string, AllocationOperationSpec>>

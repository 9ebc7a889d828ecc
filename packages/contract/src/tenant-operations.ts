import * as z from 'zod'
import { type AllocationOperationSpec, databaseErrors, pool, poolErrors } from './allocation-operation.ts'
import { RECORDS_PATH } from './allocation-problem.ts'
import { deploymentTokenHeader } from './deployment.ts'
import { probe } from './health.ts'
import { del, get, post, put } from './operation.ts'
import * as t from './tenant-records.ts'

const TOKENS_PATH = '/api/v1/pool/{domain}/tokens'

const holderErrors = [
  ['token-mismatch', 'The request proves neither the name nor the deployment that holds it.'],
  ...poolErrors,
  ...databaseErrors,
] as const

const tenant = { tag: 'Records', security: ['recordsToken', 'recordsPassword', 'recordsKey'] } as const

const changeErrors = ['outside-scope', 'not-active', 'invalid-record', ...databaseErrors] as const
const challengeErrors = ['delegated', 'record-conflict', 'too-many-records', ...changeErrors] as const
const setErrors = ['template-record', 'type-not-allowed', ...challengeErrors] as const
const waits = ['dns-pending', 'The change is stored; the DNS provider does not have it after 20 s. Repeat it.'] as const

const recordPath = z.object({
  name: z.string().meta({ description: 'The name of the record set, at or below that of the token.' }),
  type: z.string().meta({ example: 'TXT' }),
})

const httpreq = {
  ...tenant,
  protocol: 'httpreq',
  isRepeatable: true,
  body: { schema: t.httpreqRequest, required: true },
} as const

const externalDns = { ...tenant, protocol: 'external-dns' } as const
const externalDnsResult = <Schema extends z.ZodType>(schema: Schema, description: string) => ({
  200: { description, schema, mediaType: t.EXTERNAL_DNS_MEDIA_TYPE },
})

/** The tokens of a name, and the records that tools of tenants set with them. */
export const tenantOperations = {
  mintToken: post(TOKENS_PATH, {
    tag: 'Records',
    counted: 'mint-token',
    summary: 'Mints a token with which the tools of a tenant set records at and below a name.',
    description:
      'In-cluster, it needs the `reservationToken` of the name or the `X-Deployment-Token` of the deployment that holds it. The token ends with the reservation.',
    pathParams: pool,
    headers: deploymentTokenHeader,
    key: true,
    body: { schema: t.mintTokenRequest, required: true },
    results: { 201: { description: 'Minted. Only this response contains the token.', schema: t.mintTokenResponse } },
    errors: [
      'not-found',
      'too-many-tokens',
      'not-supported',
      'invalid-scope',
      'invalid-owner',
      'idempotency-key-reused',
      ...holderErrors,
    ],
  }),
  listTokens: get(TOKENS_PATH, {
    tag: 'Records',
    counted: 'list-tokens',
    summary: 'Lists the tokens of a name, without the tokens themselves.',
    pathParams: pool,
    query: t.tokensQuery,
    results: { 200: { description: 'The tokens, oldest first.', schema: t.tokensResponse } },
    errors: ['not-found', ...poolErrors, ...databaseErrors],
  }),
  deleteToken: del(TOKENS_PATH, {
    tag: 'Records',
    counted: 'delete-token',
    summary: 'Deletes a token of a name. Its records stay, unless `records` is true.',
    pathParams: pool,
    headers: deploymentTokenHeader,
    body: { schema: t.deleteTokenRequest, required: true },
    results: { 204: { description: 'Deleted.' } },
    errors: [['not-found', 'The name does not have the token.'], ...holderErrors],
  }),

  listRecords: get(RECORDS_PATH, {
    ...tenant,
    counted: 'list-records',
    summary: 'Lists the records that tenants have set at and below the name of the token, of all owners.',
    results: { 200: { description: 'The record sets, by name and type.', schema: t.tenantRecordsResponse } },
    errors: databaseErrors,
  }),
  putRecord: put(`${RECORDS_PATH}/{name}/{type}`, {
    ...tenant,
    counted: 'put-record',
    isRepeatable: true,
    summary: 'Creates or replaces a record set of the owner of the token.',
    description: 'Waits up to 20 s until the DNS provider has it.',
    pathParams: recordPath,
    body: { schema: t.putRecordRequest, required: true },
    results: { 200: { description: 'The DNS provider has the record set.', schema: t.tenantRecord } },
    errors: [...setErrors, waits, 'invalid-format'],
  }),
  deleteRecord: del(`${RECORDS_PATH}/{name}/{type}`, {
    ...tenant,
    counted: 'delete-record',
    isRepeatable: true,
    summary: 'Deletes a record set of the owner of the token.',
    pathParams: recordPath,
    results: { 204: { description: 'Deleted, or it did not exist.' } },
    errors: setErrors,
  }),

  presentChallenge: post(`${RECORDS_PATH}/httpreq/present`, {
    ...httpreq,
    counted: 'present-challenge',
    summary: 'Sets a value of an ACME challenge, as the httpreq provider of lego requests it, in both of its modes.',
    description: 'Waits up to 20 s until the DNS provider has it.',
    results: { 200: { description: 'The DNS provider has the value.', schema: t.httpreqResponse } },
    errors: [...challengeErrors, waits],
  }),
  cleanUpChallenge: post(`${RECORDS_PATH}/httpreq/cleanup`, {
    ...httpreq,
    counted: 'clean-up-challenge',
    summary: 'Removes a value of an ACME challenge, as the httpreq provider of lego requests it.',
    results: { 200: { description: 'Removed, or it was not there.', schema: t.httpreqResponse } },
    errors: challengeErrors,
  }),
  updateAcmeDns: post(`${RECORDS_PATH}/acme-dns/update`, {
    ...tenant,
    protocol: 'acme-dns',
    counted: 'update-acme-dns',
    isRepeatable: true,
    summary: 'Sets a value of an ACME challenge, as a client of acme-dns requests it.',
    description:
      '`subdomain` is the FQDN, with or without `_acme-challenge.`. Waits up to 20 s until the DNS provider has it.',
    body: { schema: t.acmeDnsUpdateRequest, required: true },
    results: { 200: { description: 'The DNS provider has the value.', schema: t.acmeDnsUpdateResponse } },
    errors: [...challengeErrors, waits],
  }),
  registerAcmeDns: post(`${RECORDS_PATH}/acme-dns/register`, {
    ...tenant,
    protocol: 'acme-dns',
    isPublic: true,
    counted: 'register-acme-dns',
    summary: 'Rejects the registration of a client of acme-dns: its account is in the response that has the token.',
    results: {},
    errors: ['no-registration'],
  }),
  getAcmeDnsHealth: get(`${RECORDS_PATH}/acme-dns/health`, {
    ...tenant,
    protocol: 'acme-dns',
    isPublic: true,
    summary: 'Returns that the service responds, as acme-dns does.',
    results: { 200: { description: 'Alive.', schema: probe } },
  }),

  getExternalDnsFilter: get(`${RECORDS_PATH}/external-dns`, {
    ...externalDns,
    counted: 'get-external-dns-filter',
    summary: 'Negotiates with the webhook provider of external-dns.',
    results: externalDnsResult(t.externalDnsFilter, 'The name of the token.'),
    errors: databaseErrors,
  }),
  listExternalDnsRecords: get(`${RECORDS_PATH}/external-dns/records`, {
    ...externalDns,
    counted: 'list-external-dns-records',
    summary: 'Lists the record sets of the owner of the token for external-dns.',
    results: externalDnsResult(t.externalDnsRecords, 'The endpoints.'),
    errors: databaseErrors,
  }),
  applyExternalDnsChanges: post(`${RECORDS_PATH}/external-dns/records`, {
    ...externalDns,
    counted: 'apply-external-dns-changes',
    isRepeatable: true,
    summary: 'Applies the changes of external-dns. Those that are rejected do not keep the others from being applied.',
    description: 'A 409, 422 or 429 of the other paths is a 503 here, because external-dns exits at a 4xx.',
    body: { schema: t.externalDnsChanges, required: true },
    results: { 204: { description: 'The database has all changes.' } },
    errors: setErrors,
  }),
  adjustExternalDnsEndpoints: post(`${RECORDS_PATH}/external-dns/adjustendpoints`, {
    ...externalDns,
    counted: 'adjust-external-dns-endpoints',
    isRead: true,
    summary: 'Returns endpoints of external-dns in their normal form, without those that would be rejected.',
    body: { schema: t.externalDnsEndpoints, required: true },
    results: {
      200: {
        description: 'The endpoints.',
        schema: t.externalDnsRecords,
        mediaType: t.EXTERNAL_DNS_MEDIA_TYPE,
        headers: { 'Records-Rejected': 'JSON: the first endpoints that are left out, with the reason.' },
      },
    },
    errors: ['invalid-record', ...databaseErrors],
  }),
} as const satisfies Readonly<Record<string, AllocationOperationSpec>>

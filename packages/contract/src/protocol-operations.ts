import type * as z from 'zod'
import { type AllocationOperationSpec, databaseErrors } from './allocation-operation.ts'
import { RECORDS_PATH } from './allocation-problem.ts'
import { probe } from './health.ts'
import { get, post } from './operation.ts'
import * as t from './protocol-records.ts'
import { challengeErrors, setErrors, tenant, waits } from './tenant-operations.ts'

const httpreq = {
  ...tenant,
  isRepeatable: true,
  body: { schema: t.httpreqRequest, required: true },
} as const

const externalDnsResult = <Schema extends z.ZodType>(schema: Schema, description: string) => ({
  200: { description, schema, mediaType: t.EXTERNAL_DNS_MEDIA_TYPE },
})

/**
 * Operations in the protocols of tools that tenants have, whose clients exist: @pool/client has no methods for them. They are in a
 * module of their own, so that it does not contain them.
 */
export const protocolOperations = {
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
    isPublic: true,
    counted: 'register-acme-dns',
    summary: 'Rejects the registration of a client of acme-dns: its account is in the response that has the token.',
    results: {},
    errors: ['no-registration'],
  }),
  getAcmeDnsHealth: get(`${RECORDS_PATH}/acme-dns/health`, {
    ...tenant,
    isPublic: true,
    summary: 'Returns that the service responds, as acme-dns does.',
    results: { 200: { description: 'Alive.', schema: probe } },
  }),

  getExternalDnsFilter: get(`${RECORDS_PATH}/external-dns`, {
    ...tenant,
    counted: 'get-external-dns-filter',
    summary: 'Negotiates with the webhook provider of external-dns.',
    results: externalDnsResult(t.externalDnsFilter, 'The name of the token.'),
    errors: databaseErrors,
  }),
  listExternalDnsRecords: get(`${RECORDS_PATH}/external-dns/records`, {
    ...tenant,
    counted: 'list-external-dns-records',
    summary: 'Lists the record sets of the owner of the token for external-dns.',
    results: externalDnsResult(t.externalDnsRecords, 'The endpoints.'),
    errors: databaseErrors,
  }),
  applyExternalDnsChanges: post(`${RECORDS_PATH}/external-dns/records`, {
    ...tenant,
    counted: 'apply-external-dns-changes',
    isRepeatable: true,
    summary: 'Applies the changes of external-dns. Those that are rejected do not keep the others from being applied.',
    description: 'A 409, 422 or 429 of the other paths is a 503 here, because external-dns exits at a 4xx.',
    body: { schema: t.externalDnsChanges, required: true },
    results: { 204: { description: 'The database has all changes.' } },
    errors: setErrors,
  }),
  adjustExternalDnsEndpoints: post(`${RECORDS_PATH}/external-dns/adjustendpoints`, {
    ...tenant,
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

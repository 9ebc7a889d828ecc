import * as z from 'zod'
import { type AllocationOperationSpec, databaseErrors, pool, poolErrors } from './allocation-operation.ts'
import { RECORDS_PATH } from './allocation-problem.ts'
import { deploymentTokenHeader } from './deployment.ts'
import { del, get, post, put } from './operation.ts'
import * as t from './tenant-records.ts'

const TOKENS_PATH = '/api/v1/pool/{domain}/tokens'

const holderErrors = [
  ['token-mismatch', 'The request proves neither the name nor the deployment that holds it.'],
  ...poolErrors,
  ...databaseErrors,
] as const

export const tenant = { tag: 'Records', security: ['recordsToken', 'recordsPassword', 'recordsKey'] } as const

const changeErrors = ['outside-scope', 'not-active', 'invalid-record', ...databaseErrors] as const
export const challengeErrors = ['delegated', 'record-conflict', 'too-many-records', ...changeErrors] as const
export const setErrors = ['template-record', 'type-not-allowed', ...challengeErrors] as const
export const waits = [
  'dns-pending',
  'The change is stored; the DNS provider does not have it after 20 s. Repeat it.',
] as const

const recordPath = z.object({
  name: z.string().meta({ description: 'The name of the record set, at or below that of the token.' }),
  type: z.string().meta({ example: 'TXT' }),
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
} as const satisfies Readonly<Record<string, AllocationOperationSpec>>

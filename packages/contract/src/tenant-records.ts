import * as z from 'zod'
import { dnsState } from './allocation.ts'
import { rule } from './allocation-problem.ts'
import { timestamp } from './common.ts'
import { absentIfNull, subdomain } from './fields.ts'

/** `acme`: TXT records of ACME challenges (RFC 8555 section 8.4). `records`: also other records at and below the name. */
export const tokenScopes = ['acme', 'records'] as const
export type TokenScope = (typeof tokenScopes)[number]

const bodyRule = rule('invalid-format', 'The body must be a JSON object with "subdomain".')
const ownerRule = rule('invalid-owner', 'owner must be 1 to 63 characters a-z, 0-9 and "-".')
const daysRule = rule('invalid-format', 'expiresInDays must be a whole number from 1 to 3650.')

const reservationToken = absentIfNull(
  z.string(rule('token-mismatch', 'reservationToken does not match this allocation.')).optional().meta({
    description:
      'Of the name. Operators need none, nor does the X-Deployment-Token of the deployment that holds the name.',
  }),
)

const tokenFields = {
  id: z.uuid(),
  scope: z.enum(tokenScopes),
  owner: z.string().meta({ description: 'Whose records the token can change.' }),
  createdAt: timestamp,
  expiresAt: timestamp.optional(),
}

export const mintTokenRequest = z
  .object(
    {
      subdomain,
      reservationToken,
      scope: z.enum(tokenScopes, rule('invalid-scope', 'scope must be "acme" or "records".')),
      owner: absentIfNull(
        z
          .string(ownerRule)
          .regex(/^[a-z0-9-]{1,63}$/, ownerRule)
          .default('default')
          .meta({ description: 'A client changes only the records of its owner.' }),
      ),
      expiresInDays: absentIfNull(
        z
          .int(daysRule)
          .min(1, daysRule)
          .max(3_650, daysRule)
          .optional()
          .meta({ description: 'Absent: the token lives as long as the name keeps its holder.' }),
      ),
    },
    bodyRule,
  )
  .meta({ id: 'MintTokenRequest' })

const acmeDnsAccount = z
  .object({
    fulldomain: z.string(),
    subdomain: z.string(),
    username: z.string(),
    password: z.string().meta({ description: 'The token.' }),
    server_url: z.string().optional().meta({ description: 'Present if the installation has PDM_RECORDS_URL.' }),
  })
  .meta({ id: 'AcmeDnsAccount' })

export const mintTokenResponse = z
  .object({
    ...tokenFields,
    token: z.string().meta({ description: 'Only this response contains it.' }),
    fqdn: z.string(),
    acmeDnsAccounts: z.record(z.string(), acmeDnsAccount).meta({
      description: 'The account file that clients of acme-dns read, for this name. A name below it needs its own key.',
    }),
  })
  .meta({ id: 'MintedToken' })
export type MintTokenResponse = z.infer<typeof mintTokenResponse>

export const tokensQuery = z.object({ sub: subdomain.meta({ description: 'The subdomain.' }) })

export const recordsToken = z
  .object({
    ...tokenFields,
    lastUsedAt: z.iso.date().optional().meta({ description: 'The day of the last write.' }),
  })
  .meta({ id: 'RecordsToken' })
export type RecordsToken = z.infer<typeof recordsToken>

export const tokensResponse = z.object({ tokens: z.array(recordsToken) }).meta({ id: 'TokensResponse' })

export const deleteTokenRequest = z
  .object(
    {
      subdomain,
      reservationToken,
      id: z
        .string(rule('invalid-format', 'id is required: that of the token.'))
        .refine(text => z.uuid().safeParse(text).success, rule('not-found', 'No such token of this name.')),
      records: absentIfNull(
        z
          .boolean(rule('invalid-format', 'records must be true or false.'))
          .default(false)
          .meta({ description: 'With `true`, the records of its owner are removed too.' }),
      ),
    },
    bodyRule,
  )
  .meta({ id: 'DeleteTokenRequest' })

/** A record set of a tenant. Names and values are in their normal form. */
export const tenantRecord = z
  .object({
    name: z.string().meta({ description: 'In lower case, without the trailing dot.' }),
    type: z.string(),
    ttl: z.int().meta({ description: 'Seconds.' }),
    values: z.array(z.string()).meta({ description: 'Host names without the trailing dot, TXT without quotes.' }),
    owner: z.string(),
    ...dnsState.shape,
  })
  .meta({ id: 'TenantRecord' })
export type TenantRecord = z.infer<typeof tenantRecord>

export const tenantRecordsResponse = z
  .object({ fqdn: z.string(), records: z.array(tenantRecord) })
  .meta({ id: 'TenantRecordsResponse' })

const ttlRule = rule('invalid-record', 'ttl must be a whole number of seconds.')
const valuesRule = rule('invalid-record', 'values must be a list of text.')

export const putRecordRequest = z
  .object(
    {
      ttl: absentIfNull(
        z.int(ttlRule).optional().meta({ description: 'Seconds; raised to the minimum of the installation.' }),
      ),
      values: z.array(z.string(valuesRule), valuesRule),
    },
    rule('invalid-format', 'The body must be a JSON object with "values".'),
  )
  .meta({ id: 'PutRecordRequest' })

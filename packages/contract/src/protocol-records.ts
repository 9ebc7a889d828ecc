import * as z from 'zod'
import { rule } from './allocation-problem.ts'
import { absentIfNull } from './fields.ts'

/** Lego's default mode, and its mode RAW. */
export const httpreqRequest = z
  .union(
    [
      z.object({ fqdn: z.string(), value: z.string() }),
      z.object({ domain: z.string(), token: z.string().optional(), keyAuth: z.string() }),
    ],
    rule('invalid-record', 'The body must be a JSON object with "fqdn" and "value", or with "domain" and "keyAuth".'),
  )
  .meta({ id: 'HttpreqRequest' })

export const httpreqResponse = z.object({}).meta({ id: 'HttpreqResponse' })

const accountRule = rule('invalid-record', 'The body must be a JSON object with "subdomain" and "txt".')

export const acmeDnsUpdateRequest = z
  .object({ subdomain: z.string(accountRule), txt: z.string(accountRule) }, accountRule)
  .meta({ id: 'AcmeDnsUpdateRequest' })

export const acmeDnsUpdateResponse = z.object({ txt: z.string() }).meta({ id: 'AcmeDnsUpdateResponse' })

/** The client compares it as text. */
export const EXTERNAL_DNS_MEDIA_TYPE = 'application/external.dns.webhook+json;version=1'

const endpointRule = rule(
  'invalid-record',
  'An endpoint must have dnsName and recordType, targets must be a list of text, recordTTL seconds, and labels text.',
)

/** Other fields of an endpoint, such as setIdentifier, are not returned: the client then compares without them. */
export const externalDnsEndpoint = z
  .object(
    {
      dnsName: z.string(endpointRule),
      recordType: z.string(endpointRule),
      targets: absentIfNull(z.array(z.string(endpointRule), endpointRule).default([])),
      recordTTL: absentIfNull(z.int(endpointRule).optional()),
      labels: absentIfNull(z.record(z.string(), z.string(endpointRule), endpointRule).optional()),
    },
    endpointRule,
  )
  .meta({ id: 'ExternalDnsEndpoint' })
export type ExternalDnsEndpoint = z.output<typeof externalDnsEndpoint>

const listRule = rule('invalid-record', 'The body must be lists of endpoints.')
/** Go sends null for an empty list. */
export const externalDnsEndpoints = absentIfNull(z.array(externalDnsEndpoint, listRule).default([]))

export const externalDnsChanges = z
  .object(
    {
      create: externalDnsEndpoints,
      updateOld: externalDnsEndpoints,
      updateNew: externalDnsEndpoints,
      delete: externalDnsEndpoints,
    },
    listRule,
  )
  .meta({ id: 'ExternalDnsChanges' })

export const externalDnsFilter = z
  .object({
    include: z.array(z.string()).meta({ description: 'The name: the client leaves out what is not below it.' }),
  })
  .meta({ id: 'ExternalDnsFilter' })

export const externalDnsRecords = z.array(
  z
    .object({
      dnsName: z.string(),
      recordType: z.string(),
      targets: z.array(z.string()),
      recordTTL: z.int().optional(),
      labels: z.record(z.string(), z.string()).optional(),
    })
    .meta({ id: 'ExternalDnsRecord' }),
)
export type ExternalDnsRecord = z.infer<typeof externalDnsRecords>[number]

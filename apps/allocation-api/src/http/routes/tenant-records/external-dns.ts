import {
  EXTERNAL_DNS_MEDIA_TYPE,
  type ExternalDnsEndpoint,
  type ExternalDnsRecord,
  externalDnsChanges,
  externalDnsEndpoints,
} from '@pool/contract'
import type { Context } from 'hono'
import type { Refusal, SetChange, TenantRecords } from '../../../records/domain/types.ts'
import { unquoteText } from '../../../records/domain/values.ts'
import { type Handlers, type HttpEnv, parseBody, sendError } from '../../request.ts'
import { changeRecords, forTenant, rejectToken } from './change.ts'

/**
 * The client reads no reason; the webhook of poolctl prints it. By default, nginx has 4 KiB for all headers of a response, and
 * replaces one that has more by a 502.
 */
const MAX_REASONS_SIZE = 2_048
/** Of a name and of a sentence, in characters: with each of them escaped, the first reason alone is not too large. */
const MAX_REASON_LENGTH = 253

type Put = Extract<SetChange, { kind: 'put' }>

const toKey = ({ dnsName, recordType }: ExternalDnsEndpoint): string =>
  `${dnsName.toLowerCase().replace(/\.$/, '')} ${recordType}`

/** Its registry writes the owner of a record into a TXT record beside it. It needs to read it again, and no one else does. */
const isOfRegistry = ({ labels }: ExternalDnsEndpoint): boolean => labels?.ownedRecord !== undefined

const toPut = (endpoint: ExternalDnsEndpoint): Put => ({
  kind: 'put',
  name: endpoint.dnsName,
  type: endpoint.recordType,
  // 0: not configured.
  ttl: endpoint.recordTTL || undefined,
  values: endpoint.targets,
  isPublished: !isOfRegistry(endpoint),
})

const toDelete = ({ dnsName, recordType }: ExternalDnsEndpoint): SetChange => ({
  kind: 'delete',
  name: dnsName,
  type: recordType,
})

const toTargets = (type: string, values: readonly string[]): string[] =>
  type === 'TXT' ? values.map(unquoteText) : [...values]

/** Printable ASCII, as a header must be. The first reason, and as many others as have room. */
const toHeader = (refusals: readonly Refusal[]): string => {
  const reasons: string[] = []
  for (const { kind, detail, change } of refusals) {
    const [dnsName, sentence] = [change.name, detail].map(text => text.slice(0, MAX_REASON_LENGTH))
    const json = JSON.stringify({ dnsName, error: kind, detail: sentence })
    const reason = json.replace(/[^ -~]/g, unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    if (reasons.length > 0 && reasons.join().length + reason.length > MAX_REASONS_SIZE) break
    reasons.push(reason)
  }
  return `[${reasons.join()}]`
}

const send = (c: Context<HttpEnv>, body: unknown, outcome: string, headers = {}): Response => {
  c.env.outcome = outcome
  return c.body(JSON.stringify(body), 200, { 'Content-Type': EXTERNAL_DNS_MEDIA_TYPE, ...headers })
}

/** The webhook provider of external-dns. */
export const externalDnsHandlers = (
  records: TenantRecords,
): Pick<
  Handlers,
  'getExternalDnsFilter' | 'listExternalDnsRecords' | 'applyExternalDnsChanges' | 'adjustExternalDnsEndpoints'
> => ({
  getExternalDnsFilter: forTenant(async (c, tokenDigest) => {
    const outcome = await records.read(tokenDigest)
    return outcome.kind === 'unauthorized' ? rejectToken(c) : send(c, { include: [outcome.fqdn] }, 'negotiated')
  }),

  listExternalDnsRecords: forTenant(async (c, tokenDigest) => {
    const outcome = await records.read(tokenDigest)
    if (outcome.kind === 'unauthorized') return rejectToken(c)
    // It deletes what it gets and does not want: no records of other owners, and no challenges.
    const own = outcome.sets.filter(
      ({ owner, name }) => owner === outcome.owner && !name.split('.').includes('_acme-challenge'),
    )
    const endpoints = own.map(({ name, type, ttl, values }): ExternalDnsRecord => {
      return { dnsName: name, recordType: type, targets: toTargets(type, values), recordTTL: ttl }
    })
    return send(c, endpoints, 'listed')
  }),

  applyExternalDnsChanges: forTenant(async (c, tokenDigest) => {
    const body = await parseBody(c, externalDnsChanges)
    if (!body.ok) return sendError(c, body.error)
    const { create, updateOld, updateNew, delete: deleted } = body.value
    const puts = [...updateNew, ...create]
    const kept = new Set(puts.map(toKey))
    // First, so that a set of another type can take the place of one that is deleted.
    const deletes = [...deleted, ...updateOld].filter(endpoint => !kept.has(toKey(endpoint)))
    const changes = [...deletes.map(toDelete), ...puts.map(toPut)]
    return changeRecords(c, { records, tokenDigest, changes, waits: false, mode: 'each' }, () => c.body(null, 204))
  }),

  adjustExternalDnsEndpoints: forTenant(async (c, tokenDigest) => {
    const body = await parseBody(c, externalDnsEndpoints)
    if (!body.ok) return sendError(c, body.error)
    const endpoints = body.value
    const puts = endpoints.map(toPut)
    const outcome = await records.review(tokenDigest, puts)
    if (outcome.kind === 'unauthorized') return rejectToken(c)
    const { accepted, refusals } = outcome
    const isRejected = new Set<SetChange>(refusals.map(({ change }) => change))
    const kept = endpoints.filter((_, at) => !isRejected.has(puts[at] as Put))
    const normal = accepted.filter(change => change.kind === 'put')
    const adjusted = kept.map((endpoint, at): ExternalDnsRecord => {
      const { name = '', type = '', ttl, values = [] } = normal[at] ?? {}
      return {
        dnsName: name,
        recordType: type,
        targets: toTargets(type, values),
        ...(endpoint.recordTTL && ttl !== undefined ? { recordTTL: ttl } : {}),
        ...(endpoint.labels && { labels: endpoint.labels }),
      }
    })
    return send(c, adjusted, 'adjusted', refusals.length > 0 ? { 'Records-Rejected': toHeader(refusals) } : {})
  }),
})

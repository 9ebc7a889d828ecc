import { z } from 'zod'
import type { EnvReader } from '../../../config/env.ts'
import { chunkBySize } from '../../../lib/chunk.ts'
import { type BatchResult, bisect } from '../../bisect.ts'
import type { ApplyResult, Unavailable } from '../../domain/result.ts'
import { changeKey, type RecordSet, recordKey } from '../../domain/rrset.ts'
import { groupByOwner, toApplyResult } from '../../group-changes.ts'
import { type ProviderResponse, requestJson } from '../../http-client.ts'
import type { DnsProvider, ReadProvider } from '../../provider.ts'
import { sanitizeMessage } from '../../sanitize-error.ts'
import { isSecondary, parseOwner, splitRecords, toRrset, validatePowerdnsChange, zoneResponse } from './rrset.ts'

export interface PowerdnsOptions {
  /** Base URL of the API's web server, without `/api/v1`. */
  readonly url: string
  /** The server's `api-key`. */
  readonly apiKey: string
  /** `localhost`, unless a proxy in front of the API serves several servers. */
  readonly serverId: string
}

interface OwnerRrsets {
  readonly name: string
  readonly rrsets: readonly ReturnType<typeof toRrset>[]
}

const errorAnswer = z.object({ error: z.string() })
const errorIn = ({ body }: ProviderResponse): string => errorAnswer.safeParse(body).data?.error ?? ''

/** The server accepts 2 MB (`webserver-max-bodysize`). */
const MAX_BODY_BYTES = 1_000_000

/** Statuses caused by the request. A gateway with a lower size limit also returns 400 or 413. */
const rejections: ReadonlySet<number> = new Set([400, 409, 413, 422])

/** Rejected calls of one `apply`: more than the logarithm of the largest part, and few enough for the timeout of one call. */
const MAX_REJECTIONS = 50

/**
 * PowerDNS Authoritative Server over its REST API, as of version 4.7.
 *
 * `read` always fetches the whole zone: `rrset_name` returns one name and nothing below it, and `search-data` truncates
 * silently and finds nothing with backends that cannot search. Disabled records are not served, so only a change with
 * `dropsUnserved` affects them. The server handles the serial and NOTIFY (SOA-EDIT-API of the zone).
 */
export const createPowerdnsProvider = ({ url, apiKey, serverId }: PowerdnsOptions): DnsProvider => {
  const zones = new URL(`${url.replace(/\/+$/, '')}/api/v1/servers/${encodeURIComponent(serverId)}/zones/`)
  const headers = { 'X-API-Key': apiKey }
  /** The disabled records of each zone in its last read, on which the next apply is planned. */
  const lastUnserved = new Map<string, ReadonlyMap<string, RecordSet>>()

  const call = (zone: string, rrsets: readonly unknown[] | undefined, signal: AbortSignal) => {
    const request = { url: new URL(encodeURIComponent(`${zone}.`), zones), headers }
    return requestJson(rrsets ? { ...request, method: 'PATCH', body: { rrsets } } : request, signal)
  }

  const unavailable = (zone: string, answer: ProviderResponse): Unavailable => {
    const { status, retryAfterMs } = answer
    const reasons: Readonly<Record<number, string>> = {
      401: 'PowerDNS rejected the API key (401).',
      // From a gateway: the server itself never returns it.
      403: `The API key may not be used for the zone ${zone} (403).`,
      // The server returns the same for an unknown server id or path.
      404: `PowerDNS has no zone ${zone} on the server ${serverId} (404).`,
      429: 'PowerDNS limits the rate of requests (429).',
    }
    const message = sanitizeMessage(errorIn(answer), [apiKey])
    const reason = reasons[status] ?? `PowerDNS answered ${status}${message && `: ${message}`}.`
    return {
      kind: 'unavailable',
      reason,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(status === 403 || status === 404 ? { scope: 'zone' } : {}),
    }
  }

  /** One PATCH, which the server applies completely or not at all. */
  const send = async (
    zone: string,
    part: readonly OwnerRrsets[],
    signal: AbortSignal,
  ): Promise<BatchResult<OwnerRrsets, Unavailable>> => {
    const rrsets = part.flatMap(owner => owner.rrsets)
    const answer = await call(zone, rrsets, signal)
    if (answer.kind === 'unavailable') return { kind: 'failed', failure: answer }
    if (answer.status >= 200 && answer.status <= 299) return { kind: 'accepted' }
    if (!rejections.has(answer.status)) return { kind: 'failed', failure: unavailable(zone, answer) }
    const error = errorIn(answer)
    const reason = sanitizeMessage(error, [apiKey]) || `PowerDNS answered ${answer.status}.`
    const culprit = parseOwner(error)
    return { kind: 'rejected', reason, suspects: part.filter(({ name }) => name === culprit), isCertain: true }
  }

  return {
    async read(zone, _owners, signal) {
      const answer = await call(zone, undefined, signal)
      if (answer.kind === 'unavailable') return answer
      if (answer.status !== 200) return unavailable(zone, answer)
      const parsed = zoneResponse.safeParse(answer.body)
      if (!parsed.success) return { kind: 'unavailable', reason: 'The response is not from the PowerDNS API.' }
      if (isSecondary(parsed.data)) {
        const reason = `The zone ${zone} is a secondary zone in PowerDNS (${parsed.data.kind}): changes to it would be lost.`
        return { kind: 'unavailable', reason, scope: 'zone' }
      }
      const { served, unserved } = splitRecords(parsed.data)
      lastUnserved.set(zone, new Map(unserved.map(set => [recordKey(set), set])))
      return { kind: 'read', records: served, unserved, isFullZone: true }
    },

    async apply(zone, changes, signal): Promise<ApplyResult> {
      const { owners, rejected } = groupByOwner(changes, change => validatePowerdnsChange(zone, change))
      const unserved = lastUnserved.get(zone)
      const wanted: readonly OwnerRrsets[] = owners.map(({ name, changes: own }) => ({
        name,
        rrsets: own.map(change => toRrset(change, unserved?.get(changeKey(change)))),
      }))
      const parts = chunkBySize(wanted, ({ rrsets }) => Buffer.byteLength(JSON.stringify(rrsets)), MAX_BODY_BYTES)
      const result = await bisect(parts, part => send(zone, part, signal), { maxRejections: MAX_REJECTIONS })
      if (result.kind === 'failed') return result.failure
      const all = [...rejected, ...Array.from(result.rejected, ([{ name }, reason]) => [name, reason] as const)]
      return toApplyResult(
        new Map(all),
        result.skipped.map(({ name }) => name),
      )
    },

    async close() {},
  }
}

export const readPowerdnsProvider: ReadProvider = (read: EnvReader) => {
  const options = {
    url: read.url('DNSPROVIDER_POWERDNS_URL'),
    apiKey: read.required('DNSPROVIDER_POWERDNS_API_KEY', "the server's api-key"),
    serverId: read.text('DNSPROVIDER_POWERDNS_SERVER_ID') ?? 'localhost',
  }
  return async () => ({ provider: createPowerdnsProvider(options), info: { url: options.url } })
}

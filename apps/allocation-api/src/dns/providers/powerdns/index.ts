import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import type { EnvReader } from '@pool/runtime/service/env'
import pLimit from 'p-limit'
import * as z from 'zod'
import { chunkBySize } from '../../../lib/chunk.ts'
import { JsonArrayError, JsonArraySplitter } from '../../../lib/json-array-splitter.ts'
import { type BatchResult, bisect } from '../../bisect.ts'
import {
  type ApplyResult,
  type ReadResult,
  toZoneRefusal,
  type Unavailable,
  type WantedRecords,
  type ZoneCheck,
  type ZonePart,
  type ZoneSearch,
} from '../../domain/result.ts'
import { changeKey, groupByOwner, type RecordSet, recordKey, toApplyResult } from '../../domain/rrset.ts'
import { type ProviderResponse, requestJson, requestStream, toUnavailable } from '../../http-client.ts'
import type { DnsProvider, ReadProvider, ZoneOf } from '../../provider.ts'
import { collectWanted } from '../../read-zone.ts'
import { sanitizeMessage } from '../../sanitize-error.ts'
import {
  isSecondary,
  parseOwner,
  rrsetList,
  splitRecords,
  toRrset,
  validatePowerdnsChange,
  zoneResponse,
} from './rrset.ts'

export interface PowerdnsOptions {
  /** Base URL of the API's web server, without `/api/v1`. */
  readonly url: string
  /** The server's `api-key`. */
  readonly apiKey: string
  /** `localhost`, unless a proxy in front of the API serves several servers. */
  readonly serverId: string
  /** Default: each pool is a zone. */
  readonly zoneOf?: ZoneOf
}

interface OwnerRrsets {
  readonly name: string
  readonly rrsets: readonly ReturnType<typeof toRrset>[]
}

const zoneInfo = z.object({ kind: z.string(), soa_edit_api: z.string().optional() })
const zoneNames = z.array(z.object({ name: z.string().transform(name => name.replace(/\.$/, '').toLowerCase()) }))
const errorAnswer = z.object({ error: z.string() })
const errorIn = ({ body }: ProviderResponse): string => errorAnswer.safeParse(body).data?.error ?? ''

/** The server accepts 2 MB (`webserver-max-bodysize`). */
const MAX_BODY_BYTES = 1_000_000

/** Statuses caused by the request. A gateway with a lower size limit also returns 400 or 413. */
const rejections: ReadonlySet<number> = new Set([400, 409, 413, 422])

/** Rejected calls of one `apply`: more than the logarithm of the largest part, and few enough for the timeout of one call. */
const MAX_REJECTIONS = 50

/** The pauses before a call is repeated that the server answered with 500, such as "database is locked" of SQLite. */
const REPEAT_PAUSES_MS = [20, 50, 100, 200, 400]

const isError = ({ kind, status }: { readonly kind: string; readonly status?: number }) =>
  kind === 'answered' && status === 500

/** Repeats calls, unless the last one of the same `what` was repeated to no avail. */
const createRepeat = () => {
  const failing = new Set<string>()
  return async <Answer extends { readonly kind: string; readonly status?: number }>(
    what: string,
    call: () => Promise<Answer>,
    onError: () => void = () => {},
  ): Promise<Answer> => {
    let answer = await call()
    for (const pauseMs of failing.has(what) ? [] : REPEAT_PAUSES_MS) {
      if (!isError(answer)) break
      onError()
      await sleep(pauseMs)
      answer = await call()
    }
    if (isError(answer)) failing.add(what)
    else failing.delete(what)
    return answer
  }
}

const MAX_PARALLEL_WRITES = 16
/** Queries by name in flight. */
const MAX_PARALLEL_QUERIES = 8
/** Record sets that the server sends in the time of one query by name. */
const RECORD_SETS_PER_QUERY = 50
/** A zone of unknown size is read by name if its whole response is larger, or takes longer. */
const MAX_UNKNOWN_BYTES = 4_000_000
const MAX_UNKNOWN_WAIT_MS = 2_000
/**
 * One call for a large zone. The server composes the whole response before it sends any of it. A PATCH takes as long if the
 * server rectifies the zone after it.
 */
const MAX_CALL_MS = 120_000
/** How often a short query asks whether a server that sends nothing is alive. */
const PROBE_INTERVAL_MS = 3_000
/** Disabled records of a zone that are remembered. */
const MAX_REMEMBERED = 10_000

/**
 * The server starts a transaction, executes the first change and rejects the second one (422), which ends the transaction
 * without an effect. A PATCH without a rejected change would increment the serial of the zone (seen with 4.7.3).
 */
const toRejectedChange = (pool: string) => {
  const name = `_no-such-name.${pool}.`
  return [
    { name, type: 'A', changetype: 'DELETE' },
    { name, type: 'A', changetype: 'NONE' },
  ]
}

/** The whole response would be too large, or take too long, for the names that are wanted. */
class ZoneTooLargeError extends Error {}

/**
 * PowerDNS Authoritative Server over its REST API, as of version 4.7.
 *
 * Names are read one by one in a large zone, and with the whole zone in a small one. `rrset_name` returns one name and nothing
 * below it, and `search-data` truncates silently and finds nothing with backends that cannot search, so branches need the
 * whole zone, which is parsed as it arrives.
 *
 * Disabled records are not served, so only a change with `dropsUnserved` affects them. A query by name does not return
 * them before version 4.9; those of a large zone are remembered from the last read of the whole zone. The server handles
 * the serial and NOTIFY (SOA-EDIT-API of the zone).
 */
export const createPowerdnsProvider = ({
  url,
  apiKey,
  serverId,
  zoneOf = pool => pool,
}: PowerdnsOptions): DnsProvider => {
  const serverUrl = `${url.replace(/\/+$/, '')}/api/v1/servers/${encodeURIComponent(serverId)}`
  const zones = new URL(`${serverUrl}/zones/`)
  const headers = { 'X-API-Key': apiKey }
  /** The disabled records of each zone in its last read, on which the next apply is planned. */
  const lastUnserved = new Map<string, ReadonlyMap<string, RecordSet>>()
  /** The record sets of each zone in its last complete read; infinite: unknown, but many. */
  const sizes = new Map<string, number>()

  const toZoneUrl = (zone: string, query = ''): URL => new URL(encodeURIComponent(`${zone}.`) + query, zones)
  const repeat = createRepeat()
  const get = (zone: string, query: string, signal: AbortSignal) =>
    repeat(`read ${zone}`, () => requestJson({ url: toZoneUrl(zone, query), headers }, signal))
  /** SQLite has one writer, so after the first 500 the writes to all zones take turns. */
  const turns = pLimit(MAX_PARALLEL_WRITES)
  const patch = (zone: string, rrsets: readonly unknown[], signal: AbortSignal) => {
    const call = () => requestJson({ url: toZoneUrl(zone), headers, method: 'PATCH', body: { rrsets } }, signal)
    const takeTurns = () => {
      turns.concurrency = 1
    }
    return turns(() => repeat(`write ${zone}`, call, takeTurns))
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
    const answer = await patch(zone, rrsets, signal)
    if (answer.kind === 'unavailable') return { kind: 'failed', failure: answer }
    if (answer.status >= 200 && answer.status <= 299) return { kind: 'accepted' }
    if (!rejections.has(answer.status)) return { kind: 'failed', failure: unavailable(zone, answer) }
    const error = errorIn(answer)
    const reason = sanitizeMessage(error, [apiKey]) || `PowerDNS answered ${answer.status}.`
    const culprit = parseOwner(error)
    const suspects = part.filter(({ name }) => name === culprit)
    return { kind: 'rejected', reason, suspects, isCertain: true, isDoubtful: suspects.length === 0 }
  }

  const notFromApi: Unavailable = { kind: 'unavailable', reason: 'The response is not from the PowerDNS API.' }
  const secondary = (zone: string, kind: string): Unavailable => ({
    kind: 'unavailable',
    reason: `The zone ${zone} is a secondary zone in PowerDNS (${kind}): changes to it would be lost.`,
    scope: 'zone',
  })

  /** Throws a `ZoneTooLargeError` if the response is larger than `maxBytes`. */
  const streamZone = async function* (
    zone: string,
    signal: AbortSignal,
    maxBytes = Number.POSITIVE_INFINITY,
  ): AsyncGenerator<ZonePart | Unavailable, void> {
    const response = await repeat(`read ${zone}`, () => requestStream({ url: toZoneUrl(zone), headers }, signal))
    if (response.kind === 'unavailable') return yield response
    if (response.kind === 'answered') return yield unavailable(zone, response)
    if ((response.length ?? 0) > maxBytes) {
      await response.body[Symbol.asyncIterator]().return?.()
      throw new ZoneTooLargeError()
    }
    const splitter = new JsonArraySplitter('rrsets')
    const disabled = new Map<string, RecordSet>()
    let size = 0
    try {
      for await (const chunk of response.body) {
        const rrsets = rrsetList.safeParse(splitter.push(chunk))
        if (!rrsets.success) return yield notFromApi
        const { served, unserved } = splitRecords(rrsets.data)
        size += served.length
        for (const set of unserved) if (disabled.size < MAX_REMEMBERED) disabled.set(recordKey(set), set)
        if (rrsets.data.length > 0) yield { kind: 'part', records: served, unserved }
        // The body can be in memory already; other work must not wait for all of it.
        await nextTurn()
      }
      const zoneData = zoneResponse.safeParse(splitter.end())
      if (!zoneData.success) return yield notFromApi
      if (isSecondary(zoneData.data.kind)) return yield secondary(zone, zoneData.data.kind)
      sizes.set(zone, size)
      lastUnserved.set(zone, disabled)
    } catch (error) {
      yield error instanceof JsonArrayError ? notFromApi : toUnavailable(error, signal)
    }
  }

  /** While the server works on a large zone, short queries show that it is alive. `isOver`: it took too long. */
  const createProbe = (zone: string, signal: AbortSignal, onProgress: () => void) => {
    const limit = AbortSignal.timeout(MAX_CALL_MS)
    const timer = setInterval(async () => {
      const answer = await get(zone, '?rrsets=false', AbortSignal.any([signal, AbortSignal.timeout(PROBE_INTERVAL_MS)]))
      if (answer.kind === 'answered') onProgress()
    }, PROBE_INTERVAL_MS)
    return {
      signal: AbortSignal.any([signal, limit]),
      isOver: () => limit.aborted && !signal.aborted,
      [Symbol.dispose]: () => clearInterval(timer),
    }
  }

  const tooSlow = (zone: string): Unavailable => ({
    kind: 'unavailable',
    reason: `PowerDNS needs more than ${MAX_CALL_MS / 1_000} s for the zone ${zone}.`,
    scope: 'zone',
  })

  const readZone = async function* (
    zone: string,
    signal: AbortSignal,
    onProgress: () => void = () => {},
  ): AsyncGenerator<ZonePart | Unavailable, void> {
    using probe = createProbe(zone, signal, onProgress)
    for await (const part of streamZone(zone, probe.signal))
      yield part.kind === 'unavailable' && probe.isOver() ? tooSlow(zone) : part
  }

  const readName = async (zone: string, name: string, signal: AbortSignal): Promise<ReadResult> => {
    const answer = await get(zone, `?rrset_name=${encodeURIComponent(`${name}.`)}`, signal)
    if (answer.kind === 'unavailable') return answer
    if (answer.status !== 200) return unavailable(zone, answer)
    const parsed = zoneResponse.safeParse(answer.body)
    if (!parsed.success) return notFromApi
    if (isSecondary(parsed.data.kind)) return secondary(zone, parsed.data.kind)
    const { served, unserved } = splitRecords(parsed.data.rrsets)
    return { kind: 'read', records: served, unserved }
  }

  const readNames = async (
    zone: string,
    names: readonly string[],
    signal: AbortSignal,
    onProgress: () => void,
  ): Promise<ReadResult> => {
    const limit = pLimit(MAX_PARALLEL_QUERIES)
    let failure: Unavailable | undefined
    const results = await Promise.all(
      names.map(name =>
        limit(async () => {
          if (failure) return failure
          const result = await readName(zone, name, signal)
          if (result.kind === 'unavailable') failure = result
          else onProgress()
          return result
        }),
      ),
    )
    if (failure) return failure
    const read = results.filter(result => result.kind === 'read')
    const unserved = read.flatMap(result => result.unserved ?? [])
    const known = lastUnserved.get(zone) ?? []
    lastUnserved.set(zone, new Map([...known, ...unserved.map(set => [recordKey(set), set] as const)]))
    return { kind: 'read', records: read.flatMap(result => result.records), unserved }
  }

  /** The zones of the server; none if the key may not list them. */
  const listZones = async (signal: AbortSignal): Promise<ZoneSearch> => {
    const listUrl = new URL(`${serverUrl}/zones?dnssec=false`)
    const answer = await repeat('list', () => requestJson({ url: listUrl, headers }, signal))
    if (answer.kind === 'unavailable' && answer.scope !== 'zone') return answer
    if (answer.kind === 'answered' && (answer.status === 429 || answer.status >= 500)) return unavailable('', answer)
    const listed = zoneNames.safeParse(answer.kind === 'answered' && answer.status === 200 ? answer.body : [])
    if (!listed.success) return notFromApi
    return { kind: 'found', zones: listed.data.map(({ name }) => name), isAll: true }
  }

  return {
    readZone: (pool, signal, onProgress) => readZone(zoneOf(pool), signal, onProgress),

    async hasZone(name, signal) {
      const answer = await get(name, '?rrsets=false', signal)
      if (answer.kind === 'unavailable') return answer
      if (answer.status === 200) return true
      // A gateway can answer so for every zone that the key may not use.
      return answer.status === 403 || answer.status === 404 ? false : unavailable(name, answer)
    },

    findZones: (_pool, _names, signal) => listZones(signal),

    async read(pool, wanted: WantedRecords, signal, onProgress = () => {}) {
      const zone = zoneOf(pool)
      const size = sizes.get(zone)
      if (wanted.branches.length > 0) return collectWanted(readZone(zone, signal, onProgress), wanted, onProgress)
      if (size !== undefined) {
        return size > RECORD_SETS_PER_QUERY * wanted.names.length
          ? readNames(zone, wanted.names, signal, onProgress)
          : collectWanted(readZone(zone, signal, onProgress), wanted, onProgress)
      }
      const wait = AbortSignal.timeout(MAX_UNKNOWN_WAIT_MS)
      try {
        const parts = streamZone(zone, AbortSignal.any([signal, wait]), MAX_UNKNOWN_BYTES)
        const result = await collectWanted(parts, wanted, onProgress)
        if (result.kind === 'read' || !wait.aborted || signal.aborted) return result
      } catch (error) {
        if (!(error instanceof ZoneTooLargeError)) throw error
      }
      sizes.set(zone, Number.POSITIVE_INFINITY)
      return readNames(zone, wanted.names, signal, onProgress)
    },

    async apply(pool, changes, signal, onProgress = () => {}): Promise<ApplyResult> {
      const zone = zoneOf(pool)
      const { owners, rejected } = groupByOwner(changes, change => validatePowerdnsChange(pool, change))
      const unserved = lastUnserved.get(zone)
      const wanted: readonly OwnerRrsets[] = owners.map(({ name, changes: own }) => ({
        name,
        rrsets: own.map(change => toRrset(change, unserved?.get(changeKey(change)))),
      }))
      const parts = chunkBySize(wanted, ({ rrsets }) => Buffer.byteLength(JSON.stringify(rrsets)), MAX_BODY_BYTES)
      using probe = createProbe(zone, signal, onProgress)
      const result = await bisect(parts, part => send(zone, part, probe.signal), { maxRejections: MAX_REJECTIONS })
      if (result.kind === 'failed') return probe.isOver() ? tooSlow(zone) : result.failure
      if (result.kind === 'refused')
        return toZoneRefusal(`PowerDNS refuses changes of the zone ${zone}: ${result.reason}`)
      const all = [...rejected, ...Array.from(result.rejected, ([{ name }, reason]) => [name, reason] as const)]
      return toApplyResult(
        new Map(all),
        result.skipped.map(({ name }) => name),
      )
    },

    async checkZone(pool, signal): Promise<ZoneCheck> {
      const zone = zoneOf(pool)
      const unusable = (reason: string, advice: string): ZoneCheck => ({ kind: 'unusable', reason, advice })
      const key = 'check DNSPROVIDER_POWERDNS_API_KEY against api-key of the server, and webserver-allow-from'
      const address =
        'check DNSPROVIDER_POWERDNS_URL (the address of the web server, without /api/v1), and that the server has api=yes'
      const toUnusable = (answer: Unavailable | ProviderResponse): ZoneCheck => {
        if (answer.kind === 'unavailable') return unusable(answer.reason, address)
        const { reason } = unavailable(zone, answer)
        return unusable(reason, answer.status === 401 || answer.status === 403 ? key : address)
      }
      const found = await get(zone, '?rrsets=false', signal)
      if (found.kind === 'unavailable') return toUnusable(found)
      if (found.status === 404) {
        const server = await requestJson({ url: new URL(serverUrl), headers }, signal)
        if (server.kind === 'unavailable' || (server.status !== 200 && server.status !== 404)) return toUnusable(server)
        return server.status === 200
          ? unusable(
              `PowerDNS has no zone ${zone}.`,
              `create it: pdnsutil create-zone ${zone}, or correct DNSPROVIDER_MANAGED_DOMAINS or DNSPROVIDER_ZONES`,
            )
          : unusable(
              `There is no PowerDNS server ${serverId} at this URL (404).`,
              `${address}, and DNSPROVIDER_POWERDNS_SERVER_ID`,
            )
      }
      if (found.status !== 200) return toUnusable(found)
      const parsed = zoneInfo.safeParse(found.body)
      if (!parsed.success) return unusable(notFromApi.reason, address)
      if (isSecondary(parsed.data.kind))
        return unusable(secondary(zone, parsed.data.kind).reason, `make it a primary: pdnsutil set-kind ${zone} native`)
      const answer = await patch(zone, toRejectedChange(pool), signal)
      if (answer.kind === 'unavailable') return toUnusable(answer)
      if (answer.status === 422) {
        const reason = `The serial of ${zone} does not increase when the service writes, so secondaries keep old records.`
        const advice = `set it: pdnsutil set-meta ${zone} SOA-EDIT-API DEFAULT`
        const keepsSerial = /^(?:off)?$/i.test(parsed.data.soa_edit_api ?? 'unknown')
        return { kind: 'writable', ...(keepsSerial ? { defect: { reason, advice } } : {}) }
      }
      return unusable(
        unavailable(zone, answer).reason,
        'check that the backend of the zone can be written, and its log',
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
  return async ({ zoneOf }) => ({
    provider: createPowerdnsProvider({ ...options, zoneOf }),
    info: { url: options.url },
  })
}

import { isJsonObject, type JsonObject } from '../../../lib/text.ts'
import type { RefusalScope, Unavailable } from '../../domain/result.ts'
import { type ProviderRequest, type ProviderResponse, requestJson } from '../../http-client.ts'
import type { ZoneOf } from '../../provider.ts'
import { sanitizeMessage } from '../../sanitize-error.ts'
import { toList, toNumber, toText } from './record.ts'
import { findScope } from './refusals.ts'

export interface Success {
  readonly kind: 'done'
  readonly result: unknown
  readonly info: JsonObject
}

/** Cloudflare understood the request and rejected it. */
export interface CloudflareApiError {
  readonly kind: 'declined'
  readonly code: number
  readonly scope: RefusalScope
  readonly reason: string
  /** The operation that caused the error, if the response names it: `['posts', 3]`. */
  readonly culprit?: readonly [string, number]
}

/** Either the token is invalid, or the zone id is stale or not accessible to this token. Look up the zone to decide. */
export interface StaleZoneError {
  readonly kind: 'doubt'
  readonly unavailable: Unavailable
}

// Users of the API report these codes. Cloudflare documents the shape of an error but no list of codes.
/** 6003, 6111: malformed token; 9103, 9106, 9109, 10000: unknown, expired or without a required permission. */
const TOKEN_CODES: readonly number[] = [6003, 6111, 9103, 9106, 9109, 10_000]
/** No zone has this id, or the id is malformed: with HTTP status 400 or 404. */
const ZONE_CODES: readonly number[] = [1001, 7000, 7003]
/** Record does not exist; record already exists; identical record exists: the list was out of date. */
const OUTDATED_CODES: readonly number[] = [81_044, 81_057, 81_058]
const isAboutRecord = (code: number): boolean => code >= 81_000 && code < 82_000

export const isOutdated = (answer: CloudflareApiError): boolean => OUTDATED_CODES.includes(answer.code)

export const unavailable = (reason: string, retryAfterMs?: number): Unavailable =>
  retryAfterMs === undefined ? { kind: 'unavailable', reason } : { kind: 'unavailable', reason, retryAfterMs }

/** `source.pointer` is documented as a string; its content after a batch is not documented. */
const parseCulprit = (error: JsonObject): readonly [string, number] | undefined => {
  const pointer = isJsonObject(error.source) ? toText(error.source.pointer) : ''
  const [, list, index] = /(deletes|patches|posts)(?:\/|\[|\.)(\d+)/.exec(pointer) ?? []
  return list === undefined ? undefined : [list, Number(index)]
}

/** Classifies a response of the API. Its texts do not contain `secrets`. */
export const classifyResponse = (
  { status, body, retryAfterMs }: Omit<ProviderResponse, 'kind'>,
  secrets: readonly string[],
): Success | CloudflareApiError | StaleZoneError | Unavailable => {
  const envelope = isJsonObject(body) ? body : {}
  if (status >= 200 && status < 300 && envelope.success === true)
    return {
      kind: 'done',
      result: envelope.result,
      info: isJsonObject(envelope.result_info) ? envelope.result_info : {},
    }

  const errors = toList(envelope.errors)
  // 1004 is only "DNS Validation Error": its chain has the cause.
  const all = errors.flatMap(error => [error, ...toList(error.error_chain)])
  const codes = all.map(error => toNumber(error.code) ?? 0)
  const texts = all.map(error => `${toText(error.message)} (${toNumber(error.code) ?? 'no code'})`)
  const message = sanitizeMessage(texts.join(', '), secrets)
  const recordCode = codes.find(isAboutRecord)
  const code = recordCode ?? codes.at(-1) ?? 0
  const scopes = all.map(error => findScope(toNumber(error.code) ?? 0, toText(error.message)))
  if (status === 429 || scopes.includes('account'))
    return unavailable('Cloudflare limits the rate of requests (HTTP status 429).', retryAfterMs)
  if (status >= 500 || errors.length === 0) {
    const detail = message || (status < 500 ? 'not an answer of its API' : '')
    return unavailable(`Cloudflare returned HTTP status ${status}${detail && `: ${detail}`}.`, retryAfterMs)
  }
  const scope = (['room', 'zone', 'record'] as const).find(known => scopes.includes(known)) ?? 'unknown'
  if (recordCode === undefined && scope !== 'room') {
    if (status === 401 || status === 403 || codes.some(code => TOKEN_CODES.includes(code))) {
      const reason = `Cloudflare rejected the API token: ${message}. It needs Zone Read and DNS Write for the zone.`
      return { kind: 'doubt', unavailable: unavailable(reason) }
    }
    if (status === 404 || codes.some(code => ZONE_CODES.includes(code)))
      return { kind: 'doubt', unavailable: unavailable(`Cloudflare does not find the zone: ${message}.`) }
  }
  const culprit = all.map(parseCulprit).find(found => found !== undefined)
  return { kind: 'declined', code, scope, reason: message, ...(culprit ? { culprit } : {}) }
}

export interface Operations {
  readonly deletes: readonly JsonObject[]
  /** Not puts: a put would remove a record's comment and tags. */
  readonly patches: readonly JsonObject[]
  readonly posts: readonly JsonObject[]
}

export interface CloudflareOptions {
  /** Base URL of the API v4. Default: https://api.cloudflare.com/client/v4 */
  readonly url?: string
  /** Needs the permissions Zone Read and DNS Write for the zone. */
  readonly apiToken: string
  /** Default: each pool is a zone. */
  readonly zoneOf?: ZoneOf
}

export const API_URL = 'https://api.cloudflare.com/client/v4'

/**
 * Records requested per page. Cloudflare may return smaller pages, and allows larger ones, but those stay in memory for longer.
 */
const PAGE_SIZE = 1_000

type Query = Readonly<Record<string, string>>

/** Client for the four calls of the API v4 that the provider needs; each is one HTTP request. */
export const createApi = ({ url = API_URL, apiToken }: CloudflareOptions) => {
  const call = async (path: string, request: Omit<ProviderRequest, 'url' | 'headers'>, signal: AbortSignal) => {
    const target = new URL(`${url.replace(/\/+$/, '')}${path}`)
    const response = await requestJson(
      { ...request, url: target, headers: { Authorization: `Bearer ${apiToken}` } },
      signal,
    )
    return response.kind === 'unavailable' ? response : classifyResponse(response, [apiToken])
  }
  const get = async (path: string, query: Query, signal: AbortSignal) => {
    const result = await call(`${path}?${new URLSearchParams(query)}`, {}, signal)
    return result.kind === 'declined' ? unavailable(`Cloudflare rejected the read: ${result.reason}.`) : result
  }
  const recordsPath = (zoneId: string): string => `/zones/${encodeURIComponent(zoneId)}/dns_records`

  return {
    findZones: (name: string, signal: AbortSignal) => get('/zones', { name, per_page: '50' }, signal),
    findZonesBelow: (name: string, page: number, signal: AbortSignal) => {
      const query = { name: `ends_with:${name}`, page: String(page), per_page: '50' }
      return call(`/zones?${new URLSearchParams(query)}`, {}, signal)
    },
    listPage: (zoneId: string, query: Query, number: number, signal: AbortSignal) => {
      const all = { ...query, page: String(number), per_page: String(PAGE_SIZE), order: 'name' }
      return get(recordsPath(zoneId), all, signal)
    },
    /** Applies all operations in one transaction, deletions first. */
    batch: (zoneId: string, operations: Operations, signal: AbortSignal) =>
      call(`${recordsPath(zoneId)}/batch`, { method: 'POST', body: operations }, signal),
  }
}

export type CloudflareApi = ReturnType<typeof createApi>

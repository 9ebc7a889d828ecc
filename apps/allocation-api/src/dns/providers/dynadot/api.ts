import { isJsonObject, type JsonObject } from '../../../lib/text.ts'
import { REFUSAL_RETRY_MS, type RefusalScope, toZoneRefusal, type Unavailable } from '../../domain/result.ts'
import { requestJson } from '../../http-client.ts'
import { sanitizeMessage } from '../../sanitize-error.ts'
import type { DynadotRecord } from './record.ts'

/**
 * What an error is about, beside the scopes of a refusal. `busy`: the moment; `server`: Dynadot; `account`: also how many calls
 * it may make.
 */
type DynadotScope = Exclude<RefusalScope, 'room'> | 'busy' | 'wrong-key' | 'no-domain' | 'server'

/** The result of a command, from the body: Dynadot returns HTTP 200 for nearly everything. */
type DynadotResult =
  | { readonly kind: 'success'; readonly content: JsonObject }
  | { readonly kind: 'not-understood' }
  | { readonly kind: 'error'; readonly scope: DynadotScope; readonly text: string }

/**
 * Error texts are not documented. The rows follow texts that other clients report, such as "invalid key", "could not find
 * domain in your account", system_busy, "problem with connection to main server" and "Please unlock your domain firstly",
 * and words that such texts would have. The first row that fits counts; a text that fits none is `unknown`.
 */
const REFUSALS: readonly { readonly scope: DynadotScope; readonly text: RegExp }[] = [
  { scope: 'busy', text: /busy|one request|being processed/i },
  { scope: 'wrong-key', text: /\bkey\b/i },
  { scope: 'no-domain', text: /in your account|could not find domain|domain (is )?not found/i },
  { scope: 'server', text: /connection|main server|try again|maintenance|timed? ?out/i },
  { scope: 'account', text: /\b(rate|throttl\w*|quota|too many (calls|requests)|(calls?|requests?) (limit|per))\b/i },
  {
    scope: 'account',
    text: /\b(accounts?|suspend\w*|permissions?|unauthori[sz]ed|denied|balance|api (is )?(disabled|not enabled))\b/i,
  },
  { scope: 'zone', text: /\b(un)?lock(ed)?\b|\bexpired\b/i },
  {
    scope: 'record',
    text: /\b(records?|subdomains?|hosts?|address|ip|ttl|mx|cname|txt|srv|value|type|distance)\b|^invalid /i,
  },
]

export const findScope = (text: string): DynadotScope => REFUSALS.find(row => row.text.test(text))?.scope ?? 'unknown'

const toText = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : typeof value === 'number' ? String(value) : undefined

/**
 * The documentation describes ResponseCode (0: success, -1: failure), Status and Error. They are in an object named
 * after the command or, if the command was not processed, in `Response`. Some responses have them one level lower, in a
 * `...Header`, and numbers as strings.
 */
export const parseResponse = (body: unknown): DynadotResult => {
  const content = isJsonObject(body) ? Object.values(body).find(isJsonObject) : undefined
  if (!content) return { kind: 'not-understood' }
  const header = Object.entries(content).find(([name, value]) => name.endsWith('Header') && isJsonObject(value))?.[1]
  const fields = isJsonObject(header) ? header : content
  const code = toText(fields.ResponseCode ?? fields.SuccessCode)
  const status = toText(fields.Status)?.toLowerCase()
  if (code === undefined) return { kind: 'not-understood' }
  if (code === '0' && (status === undefined || status === 'success')) return { kind: 'success', content }
  const text = toText(fields.Error) ?? status ?? ''
  const scope = findScope(status === 'system_busy' ? status : text)
  const isOther = code !== '-1' && code !== '0'
  return { kind: 'error', text, scope: isOther && ['record', 'unknown', 'zone'].includes(scope) ? 'server' : scope }
}

/** The only mode in which the provider writes: in any other mode, set_dns2 would change the domain to this one. */
const OWN_DNS = 'Dynadot DNS'

export interface DomainSettings {
  /** OWN_DNS if Dynadot serves the domain's records; otherwise parking, forwarding or external name servers. */
  readonly mode: string
  /** Seconds, for every record of the domain. Undefined: it has none. */
  readonly ttl: number | undefined
  readonly records: readonly DynadotRecord[]
}

const parseRecords = (place: DynadotRecord['place'], list: unknown): DynadotRecord[] | undefined => {
  // Absent if there are no records.
  if (list === undefined || list === null) return []
  if (!Array.isArray(list)) return undefined
  const records: DynadotRecord[] = []
  for (const item of list) {
    if (!isJsonObject(item)) return undefined
    const host = place === 'main' ? '' : toText(item.Subhost)
    const type = toText(item.RecordType)
    const value = toText(item.Value)
    if (host === undefined || !type || value === undefined) return undefined
    records.push({ place, host, type, value, extra: toText(item.Value2) ?? '' })
  }
  return records
}

/**
 * The settings in the content of a get_dns response. Undefined if a part is missing or has an unknown shape, such as a
 * list with another name: to write the rest back would delete what was not understood. For a domain in another mode,
 * only the mode is returned.
 */
export const parseSettings = (content: JsonObject): DomainSettings | undefined => {
  const dns = content.GetDns ?? content.GetDnsContent
  const settings = isJsonObject(dns) ? dns.NameServerSettings : undefined
  if (!isJsonObject(settings)) return undefined
  const { Type, TTL, MainDomains, SubDomains, ...others } = settings
  const mode = toText(Type)
  if (mode !== undefined && mode !== OWN_DNS) return { mode, ttl: undefined, records: [] }
  const ttl = toText(TTL) ?? ''
  const main = parseRecords('main', MainDomains)
  const sub = parseRecords('sub', SubDomains)
  if (mode === undefined || !main || !sub) return undefined
  if (!/^\d{0,10}$/.test(ttl) || Object.values(others).some(Array.isArray)) return undefined
  return { mode, ttl: ttl === '' ? undefined : Number(ttl), records: [...main, ...sub] }
}

/** Equal for equal settings in any order of records: the order is not documented. */
export const toFingerprint = ({ mode, ttl, records }: DomainSettings): string =>
  JSON.stringify([mode, ttl, ...records.map(record => JSON.stringify(record)).sort()])

/** The result of writing a domain's whole record set: all of it is stored, or the set was rejected and none is. */
export type WriteResult =
  | { readonly kind: 'accepted' }
  /** `isDoubtful`: it is not known that a record is at fault. */
  | { readonly kind: 'rejected'; readonly reason: string; readonly isDoubtful?: boolean }
  | Unavailable

export interface DynadotApiOptions {
  /** The JSON interface of API 3. */
  readonly url: string
  /** The account's key. API 3 requires it in the query of every request. */
  readonly apiKey: string
}

/** A request takes about one second; a busy account accepts the next one after it. */
const BUSY_RETRY_AFTER_MS = 1_000

/** The URL holds the whole record set and was too long (RFC 9110 section 15.5.15, RFC 6585 section 5). */
const tooLong = new Set([414, 431])

const unavailable = (reason: string, retryAfterMs?: number): Unavailable =>
  retryAfterMs === undefined ? { kind: 'unavailable', reason } : { kind: 'unavailable', reason, retryAfterMs }

const zoneUnavailable = (reason: string): Unavailable => ({ kind: 'unavailable', scope: 'zone', reason })

const wrongKey = unavailable('Dynadot rejected the API key: check the key, and enable the API in the account.')
const busy = unavailable(
  'Dynadot is busy with another request: it accepts one at a time for each account.',
  BUSY_RETRY_AFTER_MS,
)

/**
 * Types are in lower case: get_dns returns upper case, which set_dns2 does not accept. set_dns2 requires a distance for
 * each MX record; where get_dns returns none, it is 0.
 */
const toParameters = ({ records, ttl }: DomainSettings): [string, string][] => [
  ...(['main', 'sub'] as const).flatMap(place =>
    records
      .filter(record => record.place === place)
      .flatMap((record, i): [string, string][] => {
        const type = record.type.toLowerCase()
        const extra = record.extra || (type === 'mx' ? '0' : '')
        return [
          ...(place === 'sub' ? [[`subdomain${i}`, record.host] satisfies [string, string]] : []),
          [`${place}_record_type${i}`, type],
          [`${place}_record${i}`, record.value],
          ...(extra === '' ? [] : [[`${place}_recordx${i}`, extra] satisfies [string, string]]),
        ]
      }),
  ),
  ...(ttl === undefined ? [] : [['ttl', String(ttl)] satisfies [string, string]]),
]

/** Client for the two commands of Dynadot's API 3 that the provider needs, each for one domain. */
export const createDynadotApi = ({ url, apiKey }: DynadotApiOptions) => {
  const sanitize = (text: string): string => sanitizeMessage(text, [apiKey]) || 'Dynadot gave no readable reason'

  const call = async (
    command: 'get_dns' | 'set_dns2',
    zone: string,
    parameters: readonly (readonly [string, string])[],
    signal: AbortSignal,
  ): Promise<Extract<DynadotResult, { kind: 'success' }> | Exclude<WriteResult, { kind: 'accepted' }>> => {
    const target = new URL(url)
    for (const [name, value] of [['key', apiKey], ['command', command], ['domain', zone], ...parameters] as const)
      target.searchParams.set(name, value)
    const answer = await requestJson({ url: target }, signal)
    if (answer.kind === 'unavailable') return answer
    const { status, body, retryAfterMs } = answer
    if (status === 401 || status === 403) return wrongKey
    if (tooLong.has(status))
      return zoneUnavailable(`Dynadot rejected ${command} for ${zone} because the URL is too long (HTTP ${status}).`)
    if (status !== 200) return unavailable(`Dynadot responded to ${command} with HTTP ${status}.`, retryAfterMs)
    const result = parseResponse(body)
    if (result.kind === 'success') return result
    if (result.kind === 'not-understood')
      return unavailable(`The response of Dynadot to ${command} for ${zone} is not understood.`)
    const { scope, text } = result
    switch (scope) {
      case 'busy':
        return busy
      case 'wrong-key':
        return wrongKey
      case 'no-domain':
        return zoneUnavailable(`The Dynadot account has no domain ${zone}.`)
      case 'server':
        return unavailable(`Dynadot could not process ${command}: ${sanitize(text)}`)
      case 'account':
        return unavailable(`Dynadot refuses calls of the account: ${sanitize(text)}`, REFUSAL_RETRY_MS)
      case 'zone':
        return toZoneRefusal(`Dynadot refuses changes of ${zone}: ${sanitize(text)}`)
      case 'record':
        return { kind: 'rejected', reason: sanitize(text) }
      case 'unknown':
        return { kind: 'rejected', reason: sanitize(text), isDoubtful: true }
    }
  }

  return {
    /** All settings of the domain. `unavailable` also if Dynadot does not serve its records. */
    async getDns(
      zone: string,
      signal: AbortSignal,
    ): Promise<{ readonly kind: 'settings'; readonly settings: DomainSettings } | Unavailable> {
      const answer = await call('get_dns', zone, [], signal)
      if (answer.kind === 'unavailable') return answer
      if (answer.kind === 'rejected') return unavailable(`Dynadot rejected get_dns for ${zone}: ${answer.reason}`)
      const settings = parseSettings(answer.content)
      if (!settings) return zoneUnavailable(`The response of Dynadot to get_dns for ${zone} is incomplete.`)
      if (settings.mode !== OWN_DNS)
        return zoneUnavailable(`Dynadot does not serve ${zone} itself: change its DNS setting to '${OWN_DNS}' first.`)
      return { kind: 'settings', settings }
    },

    /** Replaces all settings of the domain. Whether Dynadot accepts an empty set is not documented. */
    async setDns(zone: string, settings: DomainSettings, signal: AbortSignal): Promise<WriteResult> {
      const answer = await call('set_dns2', zone, toParameters(settings), signal)
      return answer.kind === 'success' ? { kind: 'accepted' } : answer
    },
  }
}

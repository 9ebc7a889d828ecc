import type { Unavailable } from '../../domain/result.ts'
import { requestJson } from '../../http-client.ts'
import { sanitizeMessage } from '../../sanitize-error.ts'
import { type DomainSettings, type DynadotResult, OWN_DNS, parseResponse, parseSettings } from './response.ts'
import type { WriteResult } from './write.ts'

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
  ): Promise<Extract<DynadotResult, { kind: 'success' }> | { kind: 'rejected'; reason: string } | Unavailable> => {
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
    switch (result.kind) {
      case 'success':
        return result
      case 'busy':
        return busy
      case 'wrong-key':
        return wrongKey
      case 'no-domain':
        return zoneUnavailable(`The Dynadot account has no domain ${zone}.`)
      case 'server-error':
        return unavailable(`Dynadot could not process ${command}: ${sanitize(result.text)}`)
      case 'error':
        return { kind: 'rejected', reason: sanitize(result.text) }
      case 'not-understood':
        return unavailable(`The response of Dynadot to ${command} for ${zone} is not understood.`)
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

import type { Unavailable } from '../../domain/result.ts'
import { requestJson } from '../../http-client.ts'
import { sanitizeMessage } from '../../sanitize-error.ts'
import { type DomainSettings, type DynadotResult, OWN_DNS, parseResponse, parseSettings } from './response.ts'
import type { WriteResult } from './write.ts'

export interface DynadotApiOptions {
  /** The JSON interface of API 3. */
  readonly url: string
  /** Of the account. It goes into the query of every request: there is no other place for it. */
  readonly apiKey: string
}

/** Milliseconds after which an account that was busy is asked again: a request of its own takes about one second. */
const BUSY_PAUSE_MS = 1_000

/** A whole set is a URL of some kilobytes: it was too long (RFC 9110 section 15.5.15, RFC 6585 section 5). */
const tooLong = new Set([414, 431])

const unavailable = (reason: string, retryAfterMs?: number): Unavailable =>
  retryAfterMs === undefined ? { kind: 'unavailable', reason } : { kind: 'unavailable', reason, retryAfterMs }

const zoneUnavailable = (reason: string): Unavailable => ({ kind: 'unavailable', scope: 'zone', reason })

const wrongKey = unavailable(
  'Dynadot rejected the API key: check the key, and that the account has its API switched on.',
)
const busy = unavailable('Dynadot is busy with another request: it takes one at a time for an account.', BUSY_PAUSE_MS)

/**
 * Types go back in lower case: get_dns says them in upper case, which set_dns2 does not take. It wants a distance for
 * each MX; one that get_dns shows without has 0.
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

/** The two commands of Dynadot's API 3 that are used, each for one domain. */
export const createDynadotApi = ({ url, apiKey }: DynadotApiOptions) => {
  const sanitize = (text: string): string =>
    sanitizeMessage(text, [apiKey]) || 'Dynadot gave no reason that can be told'

  const ask = async (
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
      return zoneUnavailable(`Dynadot says that the ${command} for ${zone} is too long (HTTP ${status}).`)
    if (status !== 200) return unavailable(`Dynadot answered ${command} with HTTP ${status}.`, retryAfterMs)
    const verdict = parseResponse(body)
    switch (verdict.kind) {
      case 'success':
        return verdict
      case 'busy':
        return busy
      case 'wrong-key':
        return wrongKey
      case 'no-domain':
        return zoneUnavailable(`The Dynadot account has no domain ${zone}.`)
      case 'trouble':
        return unavailable(`Dynadot could not do ${command}: ${sanitize(verdict.text)}`)
      case 'error':
        return { kind: 'rejected', reason: sanitize(verdict.text) }
      case 'not-understood':
        return unavailable(`Dynadot's answer to ${command} for ${zone} cannot be understood.`)
    }
  }

  return {
    /** Everything that the domain has; `unavailable` where its records are not Dynadot's to serve, too. */
    async getDns(
      zone: string,
      signal: AbortSignal,
    ): Promise<{ readonly kind: 'settings'; readonly settings: DomainSettings } | Unavailable> {
      const answer = await ask('get_dns', zone, [], signal)
      if (answer.kind === 'unavailable') return answer
      if (answer.kind === 'rejected') return unavailable(`Dynadot rejected get_dns for ${zone}: ${answer.reason}`)
      const settings = parseSettings(answer.content)
      if (!settings) return zoneUnavailable(`Dynadot's answer to get_dns for ${zone} is incomplete.`)
      if (settings.mode !== OWN_DNS)
        return zoneUnavailable(`Dynadot does not serve ${zone} itself: switch its DNS setting to '${OWN_DNS}' first.`)
      return { kind: 'settings', settings }
    },

    /** Replaces everything that the domain has by `settings`. That an empty set is taken is not documented. */
    async setDns(zone: string, settings: DomainSettings, signal: AbortSignal): Promise<WriteResult> {
      const answer = await ask('set_dns2', zone, toParameters(settings), signal)
      return answer.kind === 'success' ? { kind: 'accepted' } : answer
    },
  }
}

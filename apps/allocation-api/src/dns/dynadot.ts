import type { EnvReader } from '../env-reader.ts'
import { type DomainSettings, settingsOf, verdictOf } from './dynadot/answer.ts'
import { outcomeOf } from './dynadot/change.ts'
import { type DynadotRecord, recordSetsOf } from './dynadot/record.ts'
import { exchange } from './exchange.ts'
import type { DnsProvider, Unavailable } from './provider.ts'
import { recordKey } from './record-set.ts'
import type { ReadProvider } from './start.ts'
import { untilAborted } from './until-aborted.ts'

export interface DynadotProviderOptions {
  /** The JSON interface of API 3; a double has another. */
  readonly url?: string
  /** Of the account. It goes into the query of every request: there is no other place for it. */
  readonly apiKey: string
}

const DEFAULT_URL = 'https://api.dynadot.com/api3.json'

/** The only mode whose records set_dns2 replaces; in any other it would switch the domain over to this one. */
const OWN_DNS = 'Dynadot DNS'

/** Seconds that a domain without a TTL is said to have. Said by others: the documentation names no default. */
const DEFAULT_TTL = 300

const unavailable = (reason: string, retryAfterMs?: number): Unavailable =>
  retryAfterMs === undefined ? { kind: 'unavailable', reason } : { kind: 'unavailable', reason, retryAfterMs }

const late = unavailable('The DNS provider did not answer in time.')
const wrongKey = unavailable(
  'Dynadot refused the API key: check the key, and that the account has its API switched on.',
)
const busy = unavailable('Dynadot is busy with another request: it takes one at a time for an account.')

/** Work that is done one at a time, in the order in which it was asked for. */
const createQueue = () => {
  let last: Promise<unknown> = Promise.resolve()
  return <Result>(work: () => Promise<Result>): Promise<Result> => {
    const next = last.then(work)
    last = next.catch(() => undefined)
    return next
  }
}

/** Types go back in lower case: get_dns says them in upper case, which set_dns2 does not take. */
const parametersOf = (records: readonly DynadotRecord[]): [string, string][] =>
  (['main', 'sub'] as const).flatMap(place =>
    records
      .filter(record => record.place === place)
      .flatMap(({ host, type, value, extra }, i): [string, string][] => [
        ...(place === 'sub' ? [[`subdomain${i}`, host] satisfies [string, string]] : []),
        [`${place}_record_type${i}`, type.toLowerCase()],
        [`${place}_record${i}`, value],
        ...(extra === '' ? [] : [[`${place}_recordx${i}`, extra] satisfies [string, string]]),
      ]),
  )

/**
 * Dynadot, the registrar: a zone is a domain registered in the account, never a name below one. Its API (version 3)
 * knows a domain's whole record set and no part of it, so each write reads the set, changes it and sends all of it; the
 * set holds 20 records of the domain itself and 100 of names below it.
 *
 * A domain has one TTL. It stays as it is, for it is that of other people's records too, and a record set of ours that
 * is asked with another TTL is there with the domain's. So that such a set compares equal to what was asked, a read
 * says the TTL asked for (as this process remembers it); one that was forgotten costs a comparison and no write. A
 * domain that has no TTL gets the one first asked for.
 *
 * The API has no version or precondition: what somebody else writes between the read and the write of one apply is
 * lost, and so is our own last write where get_dns should answer with an older state.
 */
export const createDynadotProvider = ({ url = DEFAULT_URL, apiKey }: DynadotProviderOptions): DnsProvider => {
  const inTurn = createQueue()
  /** By zone and record key: the TTL that was asked for where the domain's stands. */
  const asked = new Map<string, Map<string, number>>()

  /** Dynadot's words, unless they might quote our request. */
  const wordsOf = (text: string): string =>
    text === '' || text.includes(apiKey) || /[?&=]|:\/\//.test(text)
      ? 'without a reason that can be told'
      : text.slice(0, 200)

  const ask = async (
    command: 'get_dns' | 'set_dns2',
    zone: string,
    parameters: readonly (readonly [string, string])[],
    signal: AbortSignal,
  ): Promise<Extract<ReturnType<typeof verdictOf>, { kind: 'success' }> | Unavailable> => {
    const target = new URL(url)
    for (const [name, value] of [['key', apiKey], ['command', command], ['domain', zone], ...parameters] as const)
      target.searchParams.set(name, value)
    const answer = await untilAborted(
      inTurn(async () => (signal.aborted ? late : exchange({ url: target }, signal))),
      signal,
    ).catch(() => late)
    if (answer.kind === 'unavailable') return answer
    const { status, body, retryAfterMs } = answer
    if (status === 401 || status === 403) return wrongKey
    if (status !== 200) return unavailable(`Dynadot answered ${command} with HTTP ${status}.`, retryAfterMs)
    const verdict = verdictOf(body)
    switch (verdict.kind) {
      case 'success':
        return verdict
      case 'busy':
        return busy
      case 'wrong-key':
        return wrongKey
      case 'no-domain':
        return unavailable(`The Dynadot account has no domain ${zone}.`)
      case 'error':
        return unavailable(`Dynadot refused ${command} for ${zone}: ${wordsOf(verdict.text)}`)
      case 'not-understood':
        return unavailable(`Dynadot's answer to ${command} for ${zone} cannot be understood.`)
    }
  }

  const settingsNow = async (
    zone: string,
    signal: AbortSignal,
  ): Promise<{ readonly kind: 'settings'; readonly settings: DomainSettings } | Unavailable> => {
    const answer = await ask('get_dns', zone, [], signal)
    if (answer.kind === 'unavailable') return answer
    const settings = settingsOf(answer.content)
    if (!settings) return unavailable(`Dynadot's answer to get_dns for ${zone} is incomplete.`)
    if (settings.mode !== OWN_DNS)
      return unavailable(`Dynadot does not serve ${zone} itself: switch its DNS setting to '${OWN_DNS}' first.`)
    return { kind: 'settings', settings }
  }

  return {
    async read(zone, _owners, signal) {
      const now = await settingsNow(zone, signal)
      if (now.kind === 'unavailable') return now
      const { records, ttl = DEFAULT_TTL } = now.settings
      const before = asked.get(zone)
      const sets = recordSetsOf(records, zone, ttl).map(set => ({ ...set, ttl: before?.get(recordKey(set)) ?? ttl }))
      const present = new Set(sets.map(recordKey))
      for (const key of before?.keys() ?? []) if (!present.has(key)) before?.delete(key)
      return { kind: 'read', records: sets }
    },

    async apply(zone, changes, signal) {
      if (changes.length === 0) return { kind: 'applied', refused: [] }
      const now = await settingsNow(zone, signal)
      if (now.kind === 'unavailable') return now
      const { records, isChanged, refused } = outcomeOf(now.settings.records, changes, zone)
      const upserts = changes.flatMap(change =>
        change.kind === 'upsert' && !refused.has(change.set.name) ? [change.set] : [],
      )
      const ttl = now.settings.ttl ?? upserts[0]?.ttl
      if (isChanged) {
        // That an empty set is taken is not documented: an error then is `unavailable`, and nothing is lost.
        const parameters = parametersOf(records)
        if (ttl !== undefined) parameters.push(['ttl', String(ttl)])
        const answer = await ask('set_dns2', zone, parameters, signal)
        if (answer.kind === 'unavailable') return answer
      }
      const ours = asked.get(zone) ?? new Map<string, number>()
      asked.set(zone, ours)
      for (const set of upserts) ours.set(recordKey(set), set.ttl)
      return { kind: 'applied', refused: Array.from(refused, ([name, reason]) => ({ name, reason })) }
    },

    async close() {},
  }
}

export const readDynadotProvider: ReadProvider = (read: EnvReader) => {
  const options = {
    url: read.url('DNSPROVIDER_DYNADOT_URL', DEFAULT_URL),
    apiKey: read.required('DNSPROVIDER_DYNADOT_API_KEY', "the account's API key"),
  }
  return async () => ({ provider: createDynadotProvider(options), about: { url: options.url } })
}

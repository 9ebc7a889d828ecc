import { z } from 'zod'
import type { EnvReader } from '../env-reader.ts'
import { exchange } from './exchange.ts'
import type { ApplyResult, DnsProvider, Unavailable } from './provider.ts'
import { isAtOrBelow, type RecordChange, type RecordSet, recordKey } from './record-set.ts'
import type { ReadProvider } from './start.ts'

export interface PowerdnsOptions {
  /** Where the API's web server is, without `/api/v1`. */
  readonly url: string
  /** The server's `api-key`. */
  readonly apiKey: string
  /** `localhost`, unless something before the API serves several servers. */
  readonly serverId: string
}

/** Records that stand in the zone and are not served (`disabled`). */
export interface UnservedRecords {
  /** Seconds. */
  readonly ttl: number
  readonly values: readonly string[]
}

/** Every change of one owner name: they stand or fall together, as the port refuses by owner name. */
export interface OwnerChanges {
  readonly name: string
  readonly changes: readonly RecordChange[]
}

const zoneAnswer = z.object({
  rrsets: z.array(
    z.object({
      name: z.string(),
      type: z.string(),
      ttl: z.number().default(0),
      records: z.array(z.object({ content: z.string(), disabled: z.boolean().default(false) })),
    }),
  ),
})
type ZoneAnswer = z.infer<typeof zoneAnswer>

const errorAnswer = z.object({ error: z.string() })

const ownerName = (absolute: string): string => absolute.replace(/\.$/, '').toLowerCase()

const ownerOf = (change: RecordChange): string => (change.kind === 'upsert' ? change.set.name : change.name)

const keyOf = (change: RecordChange): string => recordKey(change.kind === 'upsert' ? change.set : change)

/** What is served of an answered zone, and apart from it what is disabled, by record key. */
export const contentsOf = ({ rrsets }: ZoneAnswer) => {
  const served: RecordSet[] = []
  const unserved = new Map<string, UnservedRecords>()
  for (const { name: absolute, type, ttl, records } of rrsets) {
    const name = ownerName(absolute)
    const valuesWhere = (isDisabled: boolean): string[] =>
      [...new Set(records.filter(record => record.disabled === isDisabled).map(record => record.content))].sort()
    const values = valuesWhere(false)
    const disabled = valuesWhere(true)
    // Neither: a comment whose records are gone.
    if (values.length > 0) served.push({ name, type, ttl, values })
    if (disabled.length > 0) unserved.set(recordKey({ name, type }), { ttl, values: disabled })
  }
  return { served, unserved }
}

/** Whether a name is at or below one of `owners`, at the price of its labels however many the owners are. */
export const createIsBelowAny = (owners: readonly string[]) => {
  const wanted = new Set(owners)
  return (name: string): boolean => {
    const labels = name.split('.')
    return labels.some((_, i) => wanted.has(labels.slice(i).join('.')))
  }
}

/**
 * What the server would take amiss without a word: it stores a TTL of any number, takes a REPLACE without records for
 * a deletion, and says that it deleted what is in another zone. Undefined: the server shall judge.
 */
export const refusalOf = (zone: string, change: RecordChange): string | undefined => {
  if (!isAtOrBelow(ownerOf(change), zone)) return `the name is not in the zone ${zone}`
  if (change.kind === 'delete') return undefined
  const { ttl, values } = change.set
  // RFC 2181 section 8: 31 bits.
  if (!Number.isInteger(ttl) || ttl < 0 || ttl > 2 ** 31 - 1) return 'the TTL is not between 0 and 2147483647 seconds'
  return values.length === 0 ? 'there is no value' : undefined
}

/**
 * By owner name. Of several changes to one RRset the last counts, for the server refuses duplicates; deletions first,
 * for it works in order and a CNAME that is yet to go stands in the way of what takes its place.
 */
export const byOwner = (changes: readonly RecordChange[]): OwnerChanges[] => {
  const last = [...new Map(changes.map(change => [keyOf(change), change])).values()]
  const deletionsFirst = [
    ...last.filter(change => change.kind === 'delete'),
    ...last.filter(change => change.kind === 'upsert'),
  ]
  return Array.from(Map.groupBy(deletionsFirst, ownerOf), ([name, own]) => ({ name, changes: own }))
}

/** The server refuses these types with a second record, disabled or not. */
const singletons: ReadonlySet<string> = new Set(['CNAME', 'DNAME', 'SOA'])

/**
 * A change as the API wants it. REPLACE and DELETE take every record of the RRset, so that disabled ones, which somebody
 * laid aside, are handed back. Comments stay where the change does not mention them; a deletion takes them along.
 */
export const rrsetOf = (change: RecordChange, unserved: UnservedRecords | undefined) => {
  const { name, type } = change.kind === 'upsert' ? change.set : change
  const values = change.kind === 'upsert' ? change.set.values : []
  const laidAside = singletons.has(type) ? [] : (unserved?.values ?? []).filter(value => !values.includes(value))
  const records = [
    ...values.map(content => ({ content, disabled: false })),
    ...laidAside.map(content => ({ content, disabled: true })),
  ]
  const rrset = { name: `${name}.`, type }
  if (records.length === 0) return { ...rrset, changetype: 'DELETE' }
  const ttl = change.kind === 'upsert' ? change.set.ttl : unserved?.ttl
  return { ...rrset, changetype: 'REPLACE', ttl, records }
}

interface OwnerRrsets {
  readonly name: string
  readonly rrsets: readonly ReturnType<typeof rrsetOf>[]
}

/** Where the server's errors name the owner. Anchored: record content comes later in them and may hold any name. */
const namingErrors = [
  /^Record (\S+)\/\S+ '/,
  /^(?:Duplicate )?RRset (\S+) IN /,
  /^Duplicate record in RRset (\S+) IN /,
  /^(?:Unable to parse DNS Name|Name) '([^']+)'/,
]

/** The owner name that an error of the server is about; undefined: it does not say. */
export const ownerIn = (error: string): string | undefined => {
  const owner = namingErrors.map(pattern => pattern.exec(error)?.[1]).find(name => name !== undefined)
  return owner === undefined ? undefined : ownerName(owner)
}

/** The server takes 2 MB (`webserver-max-bodysize`). */
const LARGEST_BODY_BYTES = 1_000_000

/** In as few parts as there can be, in order, each at most so large (unless one element alone is larger). */
export const partsOf = <T>(elements: readonly T[], sizeOf: (element: T) => number, largest: number): T[][] => {
  const parts: T[][] = []
  let room = 0
  for (const element of elements) {
    const size = sizeOf(element)
    if (parts.length === 0 || size > room) {
      parts.push([])
      room = largest
    }
    parts.at(-1)?.push(element)
    room -= size
  }
  return parts
}

/** Answers that are about what was sent; 400 and 413 also where something on the way takes less at once. */
const refusals: ReadonlySet<number> = new Set([400, 409, 413, 422])

/**
 * Refused calls of one `apply` after which a refused part is searched no further but set aside whole: a call that ran
 * out of time would have to start all over. Names set aside come again, each in its own time.
 */
const SEARCH_LIMIT = 50

/** The server's words for an operator, on one line and not without end. */
const plain = (error: string): string =>
  error
    .replace(/[^\x20-\x7e]+/g, ' ')
    .trim()
    .slice(0, 300)

/**
 * PowerDNS Authoritative Server over its REST API, as of version 4.7.
 *
 * `read` always fetches the whole zone: `rrset_name` gives one name and not what is below it, and `search-data` is cut
 * off silently and finds nothing with backends that do not search. Disabled records count as absent, since they are not
 * served. Serial and NOTIFY are the server's (SOA-EDIT-API of the zone).
 */
export const createPowerdnsProvider = ({ url, apiKey, serverId }: PowerdnsOptions): DnsProvider => {
  const zones = new URL(`${url.replace(/\/+$/, '')}/api/v1/servers/${encodeURIComponent(serverId)}/zones/`)
  const headers = { 'X-API-Key': apiKey }
  /** By zone, as last read: what is applied was planned on it. */
  const laidAside = new Map<string, ReadonlyMap<string, UnservedRecords>>()

  const ask = (zone: string, rrsets: readonly unknown[] | undefined, signal: AbortSignal) => {
    const question = { url: new URL(encodeURIComponent(`${zone}.`), zones), headers }
    return exchange(rrsets ? { ...question, method: 'PATCH', body: { rrsets } } : question, signal)
  }

  const unavailable = (zone: string, answer: { status: number; retryAfterMs?: number }): Unavailable => {
    const { status, retryAfterMs } = answer
    const reasons: Readonly<Record<number, string>> = {
      401: 'PowerDNS refused the API key (401).',
      404: `PowerDNS has no zone ${zone} on the server ${serverId} (404).`,
      429: 'PowerDNS asks for fewer calls (429).',
    }
    const reason = reasons[status] ?? `PowerDNS answered ${status}.`
    return { kind: 'unavailable', reason, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }
  }

  /** One PATCH, which the server applies wholly or not at all. */
  const send = async (zone: string, part: readonly OwnerRrsets[], signal: AbortSignal) => {
    const answer = await ask(
      zone,
      part.flatMap(({ rrsets }) => rrsets),
      signal,
    )
    if (answer.kind === 'unavailable') return answer
    if (answer.status >= 200 && answer.status <= 299) return { kind: 'applied' as const }
    if (!refusals.has(answer.status)) return unavailable(zone, answer)
    const error = errorAnswer.safeParse(answer.body).data?.error ?? ''
    return { kind: 'refused' as const, error, reason: plain(error) || `PowerDNS answered ${answer.status}.` }
  }

  return {
    async read(zone, owners, signal) {
      const answer = await ask(zone, undefined, signal)
      if (answer.kind === 'unavailable') return answer
      if (answer.status !== 200) return unavailable(zone, answer)
      const parsed = zoneAnswer.safeParse(answer.body)
      if (!parsed.success) return { kind: 'unavailable', reason: 'The answer is not one of the PowerDNS API.' }
      const { served, unserved } = contentsOf(parsed.data)
      laidAside.set(zone, unserved)
      if (owners === 'all') return { kind: 'read', records: served }
      const isBelowAny = createIsBelowAny(owners)
      return { kind: 'read', records: served.filter(set => isBelowAny(set.name)) }
    },

    async apply(zone, changes, signal): Promise<ApplyResult> {
      const refused = new Map<string, string>()
      for (const change of changes) {
        const reason = refusalOf(zone, change)
        if (reason !== undefined) refused.set(ownerOf(change), reason)
      }
      const unserved = laidAside.get(zone)
      const owners = byOwner(changes)
        .filter(({ name }) => !refused.has(name))
        .map(({ name, changes: own }) => ({ name, rrsets: own.map(one => rrsetOf(one, unserved?.get(keyOf(one)))) }))
      const waiting = partsOf(owners, ({ rrsets }) => Buffer.byteLength(JSON.stringify(rrsets)), LARGEST_BODY_BYTES)
      let searched = 0
      for (let part = waiting.shift(); part; part = waiting.shift()) {
        const result = await send(zone, part, signal)
        if (result.kind === 'unavailable') return result
        if (result.kind === 'applied') continue
        searched += 1
        const named = ownerIn(result.error)
        const faulty = part.length === 1 ? part : part.filter(({ name }) => name === named)
        for (const { name } of faulty) refused.set(name, result.reason)
        const rest = part.filter(owner => !faulty.includes(owner))
        if (rest.length === 0) continue
        if (searched >= SEARCH_LIMIT) {
          const reason = `set aside with a batch of which too much was refused, the last for: ${result.reason}`
          for (const { name } of rest) refused.set(name, reason)
        } else if (faulty.length > 0) waiting.unshift(rest)
        else {
          const middle = Math.ceil(rest.length / 2)
          waiting.unshift(rest.slice(0, middle), rest.slice(middle))
        }
      }
      return { kind: 'applied', refused: Array.from(refused, ([name, reason]) => ({ name, reason })) }
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
  return async () => ({ provider: createPowerdnsProvider(options), about: { url: options.url } })
}

import { isIPv4, isIPv6 } from 'node:net'
import type { EnvReader } from '../env-reader.ts'
import { type Answered, exchange, type Question } from './exchange.ts'
import type { ApplyResult, DnsProvider, ReadResult, Unavailable } from './provider.ts'
import { isAtOrBelow, type RecordChange, type RecordSet, recordKey } from './record-set.ts'
import type { ReadProvider } from './start.ts'

const DEFAULT_URL = 'https://api.cloudflare.com/client/v4'

export interface CloudflareOptions {
  /** Of the API v4, without a trailing slash. Default: https://api.cloudflare.com/client/v4 */
  readonly url?: string
  /** Needs the permissions Zone Read and DNS Write for the zone. */
  readonly apiToken: string
}

/** A single record at Cloudflare, which knows no RRsets. */
export interface CloudflareRecord {
  readonly id: string
  readonly name: string
  readonly type: string
  /** Seconds; 1: automatic, which no other record can have, and every proxied one has. */
  readonly ttl: number
  readonly isProxied: boolean
  /** Presentation format. */
  readonly value: string
}

type Json = Readonly<Record<string, unknown>>

const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)
const listOf = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.filter(isJson) : [])
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)
const ownerOf = (change: RecordChange): string => (change.kind === 'upsert' ? change.set.name : change.name)

// --- Values: presentation format here, `content`, `priority` and `data` at Cloudflare.

/** Types whose content is one domain name, which Cloudflare writes without the trailing dot. */
const NAME_TYPES: readonly string[] = ['CNAME', 'DNAME', 'NS', 'PTR']
const TEXT_TYPES: readonly string[] = ['TXT', 'SPF']

const absolute = (name: string): string => `${name.toLowerCase().replace(/\.$/, '')}.`
const relative = (name: string): string => (name === '.' ? name : name.replace(/\.$/, ''))

const quotedString = /"(?:[^"\\]|\\(?:\d{3}|\D))*"/g
const quotedStrings = /^\s*"(?:[^"\\]|\\(?:\d{3}|\D))*"(?:\s*"(?:[^"\\]|\\(?:\d{3}|\D))*")*\s*$/

const octetsOf = (quoted: string): Buffer =>
  Buffer.concat(
    Array.from(quoted.slice(1, -1).matchAll(/\\(\d{3})|\\(\D)|([^\\]+)/g), ([, decimal, escaped, plain]) =>
      decimal === undefined ? Buffer.from(escaped ?? plain ?? '', 'utf8') : Buffer.from([Number(decimal)]),
    ),
  )

const quote = (octets: Buffer): string => {
  const escaped = Array.from(octets, octet => {
    if (octet === 0x22 || octet === 0x5c) return `\\${String.fromCharCode(octet)}`
    return octet >= 0x20 && octet < 0x7f ? String.fromCharCode(octet) : `\\${String(octet).padStart(3, '0')}`
  })
  return `"${escaped.join('')}"`
}

/** RFC 1035 section 3.3: a character-string has 255 octets at most. */
const pieces = (octets: Buffer): Buffer[] =>
  octets.length <= 255 ? [octets] : [octets.subarray(0, 255), ...pieces(octets.subarray(255))]

/** Content of a TXT record is quoted strings when written so, and else the bare text, which Cloudflare cuts itself. */
const quotedText = (content: string): string => {
  const strings = quotedStrings.test(content)
    ? (content.match(quotedString) ?? []).map(octetsOf)
    : [Buffer.from(content, 'utf8')]
  return strings.flatMap(pieces).map(quote).join(' ')
}

/** RFC 5952, as Cloudflare stores it. */
const canonicalIPv6 = (address: string): string =>
  isIPv6(address) && URL.canParse(`http://[${address}]`)
    ? new URL(`http://[${address}]`).hostname.slice(1, -1)
    : address.toLowerCase()

/** The value in presentation format of a record as the API gives it. */
export const presentationOf = (record: Json): string => {
  const type = textOf(record.type)
  const content = textOf(record.content)
  const data = isJson(record.data) ? record.data : {}
  const part = (key: string): string => String(data[key] ?? '')
  if (NAME_TYPES.includes(type)) return absolute(content)
  if (TEXT_TYPES.includes(type)) return quotedText(content)
  if (type === 'AAAA') return canonicalIPv6(content)
  if (type === 'MX') return `${numberOf(record.priority) ?? 0} ${absolute(content)}`
  if (type === 'SRV' && data.target !== undefined)
    return `${numberOf(data.priority) ?? numberOf(record.priority) ?? 0} ${part('weight')} ${part('port')} ${absolute(part('target'))}`
  if (type === 'CAA' && data.tag !== undefined)
    return `${part('flags')} ${part('tag')} ${quote(Buffer.from(part('value'), 'utf8'))}`
  return content
}

const isOctets16 = (text: string): boolean => /^\d{1,5}$/.test(text) && Number(text) <= 65_535

/** The fields of the API that say `value`; undefined: it is no value of that type, or of a type not written here. */
export const contentOf = (type: string, value: string): Json | undefined => {
  if (type === 'A') return isIPv4(value) ? { content: value } : undefined
  if (type === 'AAAA') return isIPv6(value) && !value.includes('%') ? { content: value } : undefined
  if (type === 'TXT') return quotedStrings.test(value) ? { content: value } : undefined
  const words = value.split(/\s+/)
  const [first = '', second = '', third = '', fourth = ''] = words
  if (NAME_TYPES.includes(type)) return words.length === 1 && first ? { content: relative(first) } : undefined
  if (type === 'MX')
    return words.length === 2 && isOctets16(first) ? { content: relative(second), priority: Number(first) } : undefined
  if (type === 'SRV') {
    if (words.length !== 4 || ![first, second, third].every(isOctets16)) return undefined
    const data = { priority: Number(first), weight: Number(second), port: Number(third), target: relative(fourth) }
    return { data, priority: data.priority }
  }
  if (type === 'CAA') {
    const [, flags, tag, text] = /^(\d{1,3}) ([a-z0-9]+) (".*")$/i.exec(value) ?? []
    if (text === undefined || !quotedStrings.test(text)) return undefined
    return { data: { flags: Number(flags), tag, value: octetsOf(text).toString('utf8') } }
  }
  return undefined
}

/** Undefined: not a record, and then the whole answer is none. */
const recordOf = (record: Json): CloudflareRecord | undefined => {
  const [id, name, type, ttl] = [textOf(record.id), textOf(record.name), textOf(record.type), numberOf(record.ttl)]
  if (!id || !name || !type || ttl === undefined) return undefined
  return {
    id,
    name: relative(name.toLowerCase()),
    type,
    ttl,
    isProxied: record.proxied === true,
    value: presentationOf(record),
  }
}

// --- Record sets.

/**
 * Records as RRsets. A TTL left to Cloudflare (300 s to resolvers) shows as 1, its number in the API: a record set of
 * this service never has it, so one that somebody made automatic or proxied is seen as changed and put right. Of
 * differing TTLs the least counts (RFC 2181 section 5.2 allows none).
 */
export const recordSetsOf = (records: readonly CloudflareRecord[]): RecordSet[] =>
  Array.from(Map.groupBy(records, recordKey).values(), ([first, ...others]) => {
    const all = first ? [first, ...others] : []
    return {
      name: first?.name ?? '',
      type: first?.type ?? '',
      ttl: Math.min(...all.map(record => record.ttl)),
      values: Array.from(new Set(all.map(record => record.value))).sort(),
    }
  })

export interface Operations {
  readonly deletes: readonly Json[]
  /** And not puts, which would take away the comment and tags somebody gave a record. */
  readonly patches: readonly Json[]
  readonly posts: readonly Json[]
}

/** What makes of the records of one name what `change` asks: right ones stay, wrong ones are changed, the rest go. */
export const operationsOf = (present: readonly CloudflareRecord[], change: RecordChange): Operations => {
  const { name, type } = change.kind === 'upsert' ? change.set : change
  const there = present.filter(record => record.name === name && record.type === type)
  if (change.kind === 'delete') return { deletes: there.map(({ id }) => ({ id })), patches: [], posts: [] }

  const { ttl, values } = change.set
  const contents = new Map(values.map(value => [presentationOf({ type, ...contentOf(type, value) }), value]))
  const kept = new Map<string, CloudflareRecord>()
  for (const record of there) if (contents.has(record.value) && !kept.has(record.value)) kept.set(record.value, record)
  const spare = there.filter(record => kept.get(record.value) !== record)
  const patches: Json[] = []
  const posts: Json[] = []
  for (const [presentation, value] of contents) {
    const fields = { name, type, ttl, proxied: false, ...contentOf(type, value) }
    const record = kept.get(presentation) ?? spare.shift()
    if (!record) posts.push(fields)
    else if (record.value !== presentation || record.ttl !== ttl || record.isProxied)
      patches.push({ id: record.id, ...fields })
  }
  return { deletes: spare.map(({ id }) => ({ id })), patches, posts }
}

const merged = (operations: readonly Operations[]): Operations => ({
  deletes: operations.flatMap(({ deletes }) => deletes),
  patches: operations.flatMap(({ patches }) => patches),
  posts: operations.flatMap(({ posts }) => posts),
})

const sizeOf = ({ deletes, patches, posts }: Operations): number => deletes.length + patches.length + posts.length

/** Why Cloudflare cannot hold what `change` asks for; undefined: nothing is known against it. */
export const refusalOf = (zone: string, change: RecordChange): string | undefined => {
  if (!isAtOrBelow(ownerOf(change), zone)) return 'the name is not in the zone'
  if (change.kind === 'delete') return undefined
  const { type, ttl, values } = change.set
  // 30 for Enterprise zones and 60 for the others, which Cloudflare judges; 1 would be «automatic».
  if (!Number.isInteger(ttl) || ttl < 30 || ttl > 86_400) return 'Cloudflare takes a TTL from 60 to 86400 seconds'
  if (values.length === 0) return 'there is no value'
  if (type === 'CNAME' && values.length > 1) return 'a name has one CNAME at most'
  if (values.some(value => contentOf(type, value) === undefined)) return `there is a value that is no ${type} record`
  return undefined
}

/** RFC 1034 section 3.6.2: a CNAME stands alone. Seen here, it costs no search for the culprit of a refused batch. */
const crowdOf = (present: readonly CloudflareRecord[], changes: readonly RecordChange[]): string | undefined => {
  const types = new Set(present.map(record => record.type))
  for (const change of changes) {
    if (change.kind === 'delete') types.delete(change.type)
    else types.add(change.set.type)
  }
  return types.has('CNAME') && types.size > 1 ? 'a CNAME and another record cannot be at one name' : undefined
}

// --- Answers.

interface Done {
  readonly kind: 'done'
  readonly result: unknown
  readonly info: Json
}

/** Cloudflare understood and declined. */
interface Declined {
  readonly kind: 'declined'
  readonly code: number
  readonly reason: string
  /** The operation it was about, where the answer says so: `['posts', 3]`. */
  readonly culprit?: readonly [string, number]
}

/** The zone's id may be of a zone that is no more. */
interface Doubt {
  readonly kind: 'doubt'
  readonly unavailable: Unavailable
}

/** 6003, 6111: no token in form; 9103, 9106, 9109, 10000: one that is unknown, ended or lacks a permission. */
const TOKEN_CODES: readonly number[] = [6003, 6111, 9103, 9106, 9109, 10_000]
/** «Please wait and consider throttling your request speed.» */
const THROTTLED = 971
/** Record does not exist; record exists already; identical record exists: the list was not of this moment. */
const OUTDATED_CODES: readonly number[] = [81_044, 81_057, 81_058]
const isAboutRecord = (code: number): boolean => code >= 81_000 && code < 82_000

const unavailable = (reason: string, retryAfterMs?: number): Unavailable =>
  retryAfterMs === undefined ? { kind: 'unavailable', reason } : { kind: 'unavailable', reason, retryAfterMs }

const culpritOf = (error: Json): readonly [string, number] | undefined => {
  const pointer = isJson(error.source) ? textOf(error.source.pointer) : ''
  const [, list, index] = /(deletes|patches|posts)(?:\/|\[|\.)(\d+)/.exec(pointer) ?? []
  return list === undefined ? undefined : [list, Number(index)]
}

/** What an answer of the API means. */
export const verdictOf = ({
  status,
  body,
  retryAfterMs,
}: Omit<Answered, 'kind'>): Done | Declined | Doubt | Unavailable => {
  const envelope = isJson(body) ? body : {}
  if (status >= 200 && status < 300 && envelope.success === true)
    return { kind: 'done', result: envelope.result, info: isJson(envelope.result_info) ? envelope.result_info : {} }

  const errors = listOf(envelope.errors)
  // 1004 is only «DNS Validation Error»: what it was is in its chain.
  const all = errors.flatMap(error => [error, ...listOf(error.error_chain)])
  const codes = all.map(error => numberOf(error.code) ?? 0)
  const said = all.map(error => `${textOf(error.message)} (${numberOf(error.code) ?? 'no code'})`).join(', ')
  if (status === 429 || codes.includes(THROTTLED))
    return unavailable('Cloudflare limits the rate of requests (HTTP status 429).', retryAfterMs)
  if (status >= 500 || errors.length === 0) {
    const what = said || (status < 500 ? 'not an answer of its API' : '')
    return unavailable(`Cloudflare answered with HTTP status ${status}${what && `: ${what}`}.`, retryAfterMs)
  }
  if (status === 401 || status === 403 || codes.some(code => TOKEN_CODES.includes(code))) {
    const reason = `Cloudflare refused the API token: ${said}. It needs Zone Read and DNS Write for the zone.`
    return { kind: 'doubt', unavailable: unavailable(reason) }
  }
  const about = codes.find(isAboutRecord)
  if (status === 404 && about === undefined)
    return { kind: 'doubt', unavailable: unavailable(`Cloudflare does not find the zone: ${said}.`) }
  const culprit = all.map(culpritOf).find(found => found !== undefined)
  return { kind: 'declined', code: about ?? codes.at(-1) ?? 0, reason: said, ...(culprit ? { culprit } : {}) }
}

// --- Calls.

interface Place {
  readonly id: string
  /** Operations that a batch may have on the zone's plan. */
  readonly batchLimit: number
  /** Calls that a list of the whole zone took when last done. */
  pages: number
}

interface Listed {
  readonly kind: 'listed'
  readonly records: readonly CloudflareRecord[]
}

const PAGE_SIZE = 5_000
/** Up to so many names one filtered call each is cheaper than the whole zone, whatever its size. */
const FEW_NAMES = 4
/** Calls under way at once: far below the 200 a second that one address may make. */
const PARALLEL_CALLS = 4
/** Lists tried until the pages of one fit together. */
const LIST_ATTEMPTS = 3
/** Batches of one apply; the limit of an account is 1200 calls in five minutes. */
const BATCH_BUDGET = 64

/** Batches of 200 operations on the Free plan, of 3500 on the others. */
const batchLimitOf = (zone: Json): number => {
  const plan = isJson(zone.plan) ? textOf(zone.plan.legacy_id) : ''
  return ['pro', 'business', 'enterprise'].includes(plan) ? 3_500 : 200
}

/** Suffixes that together cover all names: of `acme.example` and `*.acme.example` the first. */
const suffixesOf = (names: readonly string[]): string[] => {
  const bare = Array.from(new Set(names.map(name => name.replace(/^\*\./, ''))))
  const known = new Set(bare)
  const hasAbove = (name: string): boolean => {
    const labels = name.split('.')
    return labels.some((_, i) => i > 0 && known.has(labels.slice(i).join('.')))
  }
  return bare.filter(name => !hasAbove(name))
}

const inTurns = async <Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> => {
  const results: Result[] = []
  for (let i = 0; i < items.length; i += PARALLEL_CALLS)
    results.push(...(await Promise.all(items.slice(i, i + PARALLEL_CALLS).map(work))))
  return results
}

const isDoubt = (result: { readonly kind: string }): result is Doubt => result.kind === 'doubt'

interface Group {
  readonly name: string
  readonly changes: readonly RecordChange[]
  readonly operations: Operations
}

/** Groups packed into batches, none of them torn. */
export const batchesOf = <T extends { readonly operations: Operations }>(
  groups: readonly T[],
  limit: number,
): T[][] => {
  const batches: T[][] = []
  let room = 0
  for (const group of groups) {
    const size = sizeOf(group.operations)
    if (size > room) {
      batches.push([])
      room = limit
    }
    batches.at(-1)?.push(group)
    room -= size
  }
  return batches
}

/**
 * Cloudflare DNS by its API v4. An apply lists the changed names first, for the ids of their records, and then sends
 * batches, each of which is one transaction. Records of other names and types are in no call that writes.
 */
export const createCloudflareProvider = ({ url = DEFAULT_URL, apiToken }: CloudflareOptions): DnsProvider => {
  const places = new Map<string, Place>()

  const ask = async (path: string, question: Omit<Question, 'url' | 'headers'>, signal: AbortSignal) => {
    const to = new URL(`${url.replace(/\/+$/, '')}${path}`)
    const answer = await exchange({ ...question, url: to, headers: { Authorization: `Bearer ${apiToken}` } }, signal)
    return answer.kind === 'unavailable' ? answer : verdictOf(answer)
  }

  const get = async (path: string, query: Readonly<Record<string, string>>, signal: AbortSignal) => {
    const answer = await ask(`${path}?${new URLSearchParams(query)}`, {}, signal)
    return answer.kind === 'declined' ? unavailable(`Cloudflare refused to read: ${answer.reason}.`) : answer
  }

  const findPlace = async (zone: string, signal: AbortSignal): Promise<Place | Unavailable> => {
    const answer = await get('/zones', { name: zone, per_page: '50' }, signal)
    if (answer.kind !== 'done') return isDoubt(answer) ? answer.unavailable : answer
    const found = listOf(answer.result).filter(entry => textOf(entry.name).toLowerCase() === zone)
    // A domain can be in several accounts; it is active in one.
    const entry = found.find(({ status }) => status === 'active') ?? found[0]
    const id = textOf(entry?.id)
    if (!entry || !id)
      return unavailable(`Cloudflare has no zone ${zone}, or the API token may not read it (Zone Read).`)
    return { id, batchLimit: batchLimitOf(entry), pages: 1 }
  }

  /** With the zone's id, remembered or, when that is in doubt, looked up again. */
  const atZone = async <Result extends { readonly kind: string }>(
    zone: string,
    signal: AbortSignal,
    work: (place: Place) => Promise<Result | Doubt>,
  ): Promise<Result | Unavailable> => {
    const remembered = places.get(zone)
    if (remembered) {
      const result = await work(remembered)
      if (!isDoubt(result)) return result
      places.delete(zone)
    }
    const place = await findPlace(zone, signal)
    if ('kind' in place) return place
    const result = await work(place)
    if (isDoubt(result)) return { ...result.unavailable, reason: `Zone ${zone}: ${result.unavailable.reason}` }
    places.set(zone, place)
    return result
  }

  const page = (place: Place, query: Readonly<Record<string, string>>, number: number, signal: AbortSignal) => {
    const all = { ...query, page: String(number), per_page: String(PAGE_SIZE), order: 'name' }
    return get(`/zones/${encodeURIComponent(place.id)}/dns_records`, all, signal)
  }

  /** Every page; a page may be smaller than asked. Pages that do not fit together, for somebody wrote, are read again. */
  const list = async (place: Place, suffix: string | undefined, signal: AbortSignal) => {
    const query: Record<string, string> = suffix === undefined ? {} : { 'name.endswith': suffix }
    for (let attempt = 0; attempt < LIST_ATTEMPTS; attempt += 1) {
      const first = await page(place, query, 1, signal)
      if (first.kind !== 'done') return first
      const total = numberOf(first.info.total_count)
      const size = listOf(first.result).length
      if (total === undefined || (size === 0 && total > 0)) continue
      const pages = size === 0 ? 1 : Math.ceil(total / size)
      const numbers = Array.from({ length: pages - 1 }, (_, i) => i + 2)
      const others = await inTurns(numbers, number => page(place, query, number, signal))
      const failed = others.find(other => other.kind !== 'done')
      if (failed) return failed
      const answers = [first, ...others.filter(other => other.kind === 'done')]
      const entries = answers.flatMap(answer => listOf(answer.result).map(recordOf))
      const records = new Map(entries.flatMap(record => (record ? [[record.id, record] as const] : [])))
      const isWhole = !entries.includes(undefined) && records.size === total
      if (!isWhole || answers.some(({ info }) => info.total_count !== total)) continue
      if (suffix === undefined) place.pages = pages
      return { kind: 'listed', records: Array.from(records.values()) } as const
    }
    return unavailable('The list of records that Cloudflare gave has gaps; somebody may be changing the zone.')
  }

  /** The records at or below `names`, and maybe others. */
  const listAt = async (
    place: Place,
    names: readonly string[] | 'all',
    signal: AbortSignal,
  ): Promise<Listed | Doubt | Unavailable> => {
    const suffixes = names === 'all' ? [] : suffixesOf(names)
    if (names === 'all' || suffixes.length > Math.max(FEW_NAMES, place.pages)) return list(place, undefined, signal)
    const lists = await inTurns(suffixes, suffix => list(place, suffix, signal))
    const failed = lists.find(result => result.kind !== 'listed')
    if (failed) return failed
    const records = lists.flatMap(result => (result.kind === 'listed' ? result.records : []))
    return { kind: 'listed', records: Array.from(new Map(records.map(record => [record.id, record])).values()) }
  }

  const write = async (
    place: Place,
    changes: ReadonlyMap<string, readonly RecordChange[]>,
    refusedBefore: ReadonlyMap<string, string>,
    signal: AbortSignal,
  ): Promise<ApplyResult | Doubt> => {
    const refused = new Map(refusedBefore)
    let budget = BATCH_BUDGET

    /** Changes by name as groups of operations on what is there now. */
    const grouped = async (names: readonly string[]): Promise<Group[] | Doubt | Unavailable> => {
      const listed = await listAt(place, names, signal)
      if (listed.kind !== 'listed') return listed
      const present = Map.groupBy(listed.records, record => record.name)
      return names.flatMap(name => {
        const wanted = changes.get(name) ?? []
        const here = present.get(name) ?? []
        const operations = merged(wanted.map(change => operationsOf(here, change)))
        const crowd = crowdOf(here, wanted)
        const isLarge = sizeOf(operations) > place.batchLimit
        if (crowd) refused.set(name, crowd)
        else if (isLarge) refused.set(name, `it has more than ${place.batchLimit} records to change, a batch's limit`)
        return crowd || isLarge || sizeOf(operations) === 0 ? [] : [{ name, changes: wanted, operations }]
      })
    }

    /** One batch. One that is declined is tried on the present records, and then in parts until the culprit is alone. */
    const send = async (groups: readonly Group[], isFresh: boolean): Promise<Doubt | Unavailable | undefined> => {
      if (groups.length === 0) return undefined
      if (budget === 0) {
        const reason = 'not tried: Cloudflare refused too many changes of the same pass'
        for (const { name } of groups) refused.set(name, reason)
        return undefined
      }
      budget -= 1
      const operations = merged(groups.map(group => group.operations))
      const path = `/zones/${encodeURIComponent(place.id)}/dns_records/batch`
      const answer = await ask(path, { method: 'POST', body: operations }, signal)
      if (answer.kind === 'done') return undefined
      if (answer.kind !== 'declined') return answer

      if (OUTDATED_CODES.includes(answer.code) && !isFresh) {
        const again = await grouped(groups.map(({ name }) => name))
        return Array.isArray(again) ? sendAll(again, true) : again
      }
      const [only, ...more] = groups
      if (only && more.length === 0) {
        refused.set(only.name, answer.reason)
        return undefined
      }
      const [kind, index] = answer.culprit ?? []
      const listed = [operations.deletes, operations.patches, operations.posts]
      const faulty = listed[['deletes', 'patches', 'posts'].indexOf(kind ?? '')]?.[index ?? -1]
      const isFaulty = ({ operations: { deletes, patches, posts } }: Group): boolean =>
        faulty !== undefined && [deletes, patches, posts].some(operation => operation.includes(faulty))
      const culprit = groups.find(isFaulty)
      if (culprit) {
        // Tried alone all the same: what Cloudflare's pointers look like in a batch is documented nowhere.
        const rest = groups.filter(group => group !== culprit)
        return (await send([culprit], isFresh)) ?? (await send(rest, isFresh))
      }
      const half = Math.ceil(groups.length / 2)
      return (await send(groups.slice(0, half), isFresh)) ?? (await send(groups.slice(half), isFresh))
    }

    const sendAll = async (groups: readonly Group[], isFresh: boolean): Promise<Doubt | Unavailable | undefined> => {
      for (const batch of batchesOf(groups, place.batchLimit)) {
        const failure = await send(batch, isFresh)
        if (failure) return failure
      }
      return undefined
    }

    const groups = await grouped(Array.from(changes.keys()))
    if (!Array.isArray(groups)) return groups
    const failure = await sendAll(groups, false)
    if (failure) return failure
    return { kind: 'applied', refused: Array.from(refused, ([name, reason]) => ({ name, reason })) }
  }

  return {
    read: (zone, owners, signal) =>
      atZone(zone, signal, async (place): Promise<ReadResult | Doubt> => {
        const listed = await listAt(place, owners, signal)
        return listed.kind === 'listed' ? { kind: 'read', records: recordSetsOf(listed.records) } : listed
      }),

    async apply(zone, changes, signal) {
      const refused = new Map<string, string>()
      for (const change of changes) {
        const reason = refusalOf(zone, change)
        if (reason !== undefined) refused.set(ownerOf(change), reason)
      }
      // Of two changes of one record set the later counts.
      const last = new Map(changes.map(change => [recordKey(change.kind === 'upsert' ? change.set : change), change]))
      const accepted = Map.groupBy(
        Array.from(last.values()).filter(change => !refused.has(ownerOf(change))),
        ownerOf,
      )
      return atZone(zone, signal, place => write(place, accepted, refused, signal))
    },

    async close() {},
  }
}

export const readCloudflareProvider: ReadProvider = (read: EnvReader) => {
  const options = {
    url: read.url('DNSPROVIDER_CLOUDFLARE_URL', DEFAULT_URL),
    apiToken: read.required('DNSPROVIDER_CLOUDFLARE_API_TOKEN', 'a token with the permissions Zone Read and DNS Write'),
  }
  return async () => ({ provider: createCloudflareProvider(options), about: { url: options.url } })
}

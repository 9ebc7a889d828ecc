import { isIPv4, isIPv6 } from 'node:net'
import { domainToASCII } from 'node:url'
import { isJsonObject, type JsonObject } from '../../../lib/text.ts'
import { type RecordSet, recordKey } from '../../domain/rrset.ts'
import { quoteString, quoteStrings } from '../../wire/rdata.ts'

/** The API returns the names of internationalized zones in Unicode. Their A-labels are the names everywhere else. */
export const toAscii = (name: string): string => (/[^ -~]/.test(name) && domainToASCII(name)) || name.toLowerCase()

export const toList = (value: unknown): readonly JsonObject[] =>
  Array.isArray(value) ? value.filter(isJsonObject) : []
export const toText = (value: unknown): string => (typeof value === 'string' ? value : '')
export const toNumber = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)

/** Types whose content is one domain name, which Cloudflare writes without the trailing dot. */
const NAME_TYPES: readonly string[] = ['CNAME', 'DNAME', 'NS', 'PTR']
const TEXT_TYPES: readonly string[] = ['TXT', 'SPF']
/** The fields of DS records (RFC 4034 section 5.1), in their order in presentation format. */
const DS_FIELDS = ['key_tag', 'algorithm', 'digest_type', 'digest']

const absolute = (name: string): string => `${name.toLowerCase().replace(/\.$/, '')}.`
/** Without the trailing dot, as Cloudflare writes names. */
const relative = (name: string): string => (name === '.' ? name : name.replace(/\.$/, ''))

const quotedString = /"(?:[^"\\]|\\(?:\d{3}|\D))*"/g
const quotedStrings = /^\s*"(?:[^"\\]|\\(?:\d{3}|\D))*"(?:\s*"(?:[^"\\]|\\(?:\d{3}|\D))*")*\s*$/

const unquoteString = (quoted: string): Buffer =>
  Buffer.concat(
    Array.from(quoted.slice(1, -1).matchAll(/\\(\d{3})|\\(\D)|([^\\]+)/g), ([, decimal, escaped, plain]) =>
      decimal === undefined ? Buffer.from(escaped ?? plain ?? '', 'utf8') : Buffer.from([Number(decimal)]),
    ),
  )

/** TXT content is either quoted strings or bare text, which Cloudflare splits itself. */
const quotedText = (content: string): string => {
  const strings = quotedStrings.test(content)
    ? (content.match(quotedString) ?? []).map(unquoteString)
    : [Buffer.from(content, 'utf8')]
  return strings.map(quoteStrings).join(' ')
}

/** RFC 5952, as Cloudflare stores it. */
const canonicalIPv6 = (address: string): string =>
  isIPv6(address) && URL.canParse(`http://[${address}]`)
    ? new URL(`http://[${address}]`).hostname.slice(1, -1)
    : address.toLowerCase()

/** The value, in presentation format, of a record in the API's format. */
export const toPresentation = (record: JsonObject): string => {
  const type = toText(record.type)
  const content = toText(record.content)
  const data = isJsonObject(record.data) ? record.data : {}
  const part = (key: string): string => String(data[key] ?? '')
  if (NAME_TYPES.includes(type)) return absolute(content)
  if (TEXT_TYPES.includes(type)) return quotedText(content)
  if (type === 'AAAA') return canonicalIPv6(content)
  if (type === 'DS') return (data.digest === undefined ? content : DS_FIELDS.map(part).join(' ')).toUpperCase()
  if (type === 'MX') return `${toNumber(record.priority) ?? 0} ${absolute(content)}`
  if (type === 'SRV' && data.target !== undefined)
    return `${toNumber(data.priority) ?? toNumber(record.priority) ?? 0} ${part('weight')} ${part('port')} ${absolute(part('target'))}`
  if (type === 'CAA' && data.tag !== undefined)
    return `${part('flags')} ${part('tag')} ${quoteString(Buffer.from(part('value'), 'utf8'))}`
  return content
}

const isOctets16 = (text: string): boolean => /^\d{1,5}$/.test(text) && Number(text) <= 65_535

/** The API's fields for `value`; undefined: it is not a value of that type, or the type is not supported. */
export const toContent = (type: string, value: string): JsonObject | undefined => {
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
  if (type === 'DS') {
    const [tag, algorithm, digestType, digest] = words
    if (words.length !== 4 || !/^\d+ \d+ \d+ [0-9A-F]+$/.test(value)) return undefined
    return { data: { key_tag: Number(tag), algorithm: Number(algorithm), digest_type: Number(digestType), digest } }
  }
  if (type === 'CAA') {
    const [, flags, tag, text] = /^(\d{1,3}) ([a-z0-9]+) (".*")$/i.exec(value) ?? []
    if (text === undefined || !quotedStrings.test(text)) return undefined
    return { data: { flags: Number(flags), tag, value: unquoteString(text).toString('utf8') } }
  }
  return undefined
}

/** A single record at Cloudflare, whose API has no RRsets. */
export interface CloudflareRecord {
  readonly id: string
  readonly name: string
  readonly type: string
  /** Seconds. 1 means automatic; every proxied record has it. */
  readonly ttl: number
  readonly isProxied: boolean
  /** Presentation format. */
  readonly value: string
}

/** Undefined: not a valid record, so the whole response is invalid. */
export const parseRecord = (record: JsonObject): CloudflareRecord | undefined => {
  const [id, name, type, ttl] = [toText(record.id), toText(record.name), toText(record.type), toNumber(record.ttl)]
  if (!id || !name || !type || ttl === undefined) return undefined
  const isProxied = record.proxied === true
  return { id, name: relative(toAscii(name)), type, ttl, isProxied, value: toPresentation(record) }
}

/**
 * Records as RRsets. An automatic TTL (300 s for resolvers) is 1, as in the API. Record sets of this service never have
 * it, so one that another client made automatic or proxied counts as drift and is repaired. If TTLs differ, which
 * RFC 2181 section 5.2 forbids, the smallest is used.
 */
export const groupRecords = (records: readonly CloudflareRecord[]): RecordSet[] =>
  Array.from(Map.groupBy(records, recordKey).values(), all => ({
    name: all[0]?.name ?? '',
    type: all[0]?.type ?? '',
    ttl: Math.min(...all.map(record => record.ttl)),
    values: Array.from(new Set(all.map(record => record.value))).sort(),
  }))

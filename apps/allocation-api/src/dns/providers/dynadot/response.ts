import { isJsonObject, type JsonObject } from '../../../lib/json.ts'
import type { DynadotRecord } from './record.ts'

/** What one command came to, told by the body: Dynadot answers HTTP 200 to nearly everything. */
export type DynadotResult =
  | { readonly kind: 'success'; readonly content: JsonObject }
  | { readonly kind: 'busy' | 'wrong-key' | 'no-domain' | 'not-understood' }
  /** `error`: the request is to blame; `trouble`: Dynadot is. */
  | { readonly kind: 'error' | 'trouble'; readonly text: string }

const toText = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : typeof value === 'number' ? String(value) : undefined

/**
 * The documentation describes ResponseCode (0: done, -1: not), Status and Error, in an object named for the command or,
 * before the command is looked at, `Response`. Some answers have them one level down, in a ...Header, and numbers as
 * strings. It lists no texts of errors: the patterns are made from those that others have met ("invalid key", "could not
 * find domain in your account", system_busy, "problem with connection to main server"). What matches none of them is
 * an error.
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
  if (status === 'system_busy' || /busy|one request|being processed/i.test(text)) return { kind: 'busy' }
  if (/\bkey\b/i.test(text)) return { kind: 'wrong-key' }
  if (/in your account|could not find domain|domain (is )?not found/i.test(text)) return { kind: 'no-domain' }
  const isOther = code !== '-1' && code !== '0'
  if (isOther || /connection|main server|try again|maintenance|timed? ?out/i.test(text))
    return { kind: 'trouble', text }
  return { kind: 'error', text }
}

/** The only mode whose records set_dns2 replaces; in any other it would switch the domain over to this one. */
export const OWN_DNS = 'Dynadot DNS'

export interface DomainSettings {
  /** OWN_DNS when its records are the domain's; else parking, forwarding or the name servers of somebody else. */
  readonly mode: string
  /** Seconds, for every record of the domain. Undefined: it has none. */
  readonly ttl: number | undefined
  readonly records: readonly DynadotRecord[]
}

const parseRecords = (place: DynadotRecord['place'], list: unknown): DynadotRecord[] | undefined => {
  // Left out where there is none.
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
 * Of the content of a get_dns answer; undefined when a part of it is missing or of a shape that we do not know, such as a
 * list of another name: to write the rest back would delete what was not understood. Of a domain in another mode only
 * that is said.
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

/** Equal for two answers that say the same. Nothing says that the records come in the same order each time. */
export const toFingerprint = ({ mode, ttl, records }: DomainSettings): string =>
  JSON.stringify([mode, ttl, ...records.map(record => JSON.stringify(record)).sort()])

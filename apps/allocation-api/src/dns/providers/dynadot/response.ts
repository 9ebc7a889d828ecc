import { isJsonObject, type JsonObject } from '../../../lib/text.ts'
import type { DynadotRecord } from './record.ts'

/** The result of a command, from the body: Dynadot returns HTTP 200 for nearly everything. */
export type DynadotResult =
  | { readonly kind: 'success'; readonly content: JsonObject }
  | { readonly kind: 'busy' | 'wrong-key' | 'no-domain' | 'not-understood' }
  /** `error`: the request is at fault; `server-error`: Dynadot is at fault. */
  | { readonly kind: 'error' | 'server-error'; readonly text: string }

const toText = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : typeof value === 'number' ? String(value) : undefined

/**
 * The documentation describes ResponseCode (0: success, -1: failure), Status and Error. They are in an object named
 * after the command or, if the command was not processed, in `Response`. Some responses have them one level lower, in a
 * `...Header`, and numbers as strings. Error texts are not documented: the patterns follow texts that other clients
 * report ("invalid key", "could not find domain in your account", system_busy, "problem with connection to main
 * server"). A text that matches no pattern is an error.
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
    return { kind: 'server-error', text }
  return { kind: 'error', text }
}

/** The only mode in which the provider writes: in any other mode, set_dns2 would change the domain to this one. */
export const OWN_DNS = 'Dynadot DNS'

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

import { isAtOrBelow, type RecordSet, recordKey } from '../../domain/rrset.ts'
import { isRecordValue } from '../../rdata.ts'
import { quoteStrings } from '../../wire/character-string.ts'

/** A record as Dynadot's API has it. What is not ours goes back exactly as it came. */
export interface DynadotRecord {
  /** `main`: of the domain itself; `sub`: of a name below it. The API lists and limits them apart. */
  readonly place: 'main' | 'sub'
  /** Relative to the domain; empty for `main`. */
  readonly host: string
  /** Upper or lower case; beside DNS types Dynadot's own: forward, stealth, email. */
  readonly type: string
  readonly value: string
  /** The distance of an MX; of Dynadot's own types what they need. Empty: none. */
  readonly extra: string
}

const quotedStrings = /^"(?:[^"\\]|\\.)*"(?: +"(?:[^"\\]|\\.)*")*$/
const plainString = /^"((?:[^"\\]|\\["\\])*)"$/
const serviceValue = /^\d{1,5} \d{1,5} \d{1,5} \S+$/

const absolute = (name: string): string => (name.endsWith('.') ? name : `${name}.`)
const relative = (name: string): string => (name === '.' ? name : name.replace(/\.$/, ''))

/**
 * Dynadot keeps the bare text of a TXT record. Its documentation says nothing of quotes: text that is quoted strings
 * already is taken for the presentation format.
 */
const toTxtValue = (text: string): string => (quotedStrings.test(text) ? text : quoteStrings(Buffer.from(text, 'utf8')))

const unquoted = (value: string): string => {
  const text = plainString.exec(value)?.[1]?.replace(/\\(["\\])/g, '$1')
  return text === undefined || text === '' || text.startsWith('"') ? value : text
}

/** The value in presentation format. Dynadot writes names without their trailing dot. */
const toPresentation = ({ type, value, extra }: DynadotRecord): string => {
  switch (type.toUpperCase()) {
    case 'CNAME':
    case 'NS':
      return absolute(value)
    case 'MX':
      return `${extra || '0'} ${absolute(value)}`
    case 'SRV':
      // The documentation does not say how the four fields are shared out: here the second value, if any, comes first.
      return absolute([extra, value].filter(part => part !== '').join(' '))
    case 'TXT':
      return toTxtValue(value)
    default:
      return [value, extra].filter(part => part !== '').join(' ')
  }
}

const toDynadotData = (type: string, value: string): Pick<DynadotRecord, 'value' | 'extra'> => {
  switch (type) {
    case 'CNAME':
    case 'SRV':
      return { value: relative(value), extra: '' }
    case 'MX': {
      const [distance = '', exchange = ''] = value.split(/ +/)
      return { value: relative(exchange), extra: distance }
    }
    case 'TXT':
      return { value: unquoted(value), extra: '' }
    default:
      return { value, extra: '' }
  }
}

export const toName = ({ host }: DynadotRecord, zone: string): string =>
  (host === '' || host === '@' ? zone : `${host}.${zone}`).toLowerCase()

export const toKey = (record: DynadotRecord, zone: string): string =>
  recordKey({ name: toName(record, zone), type: record.type.toUpperCase() })

/** The record sets that `records` are; all have the one TTL of the domain, in seconds. */
export const toRecordSets = (records: readonly DynadotRecord[], zone: string, ttl: number): RecordSet[] =>
  Array.from(Map.groupBy(records, record => toKey(record, zone)).values()).flatMap(group => {
    const [first] = group
    if (!first) return []
    const values = Array.from(new Set(group.map(toPresentation))).sort()
    return [{ name: toName(first, zone), type: first.type.toUpperCase(), ttl, values }]
  })

/** `set` as Dynadot's API takes it. Its name is at or below `zone`. */
export const toDynadotRecords = ({ name, type, values }: RecordSet, zone: string): DynadotRecord[] => {
  const place = name === zone ? 'main' : 'sub'
  const host = name === zone ? '' : name.slice(0, -zone.length - 1)
  return values.map(value => ({ place, host, type: type.toLowerCase(), ...toDynadotData(type, value) }))
}

const isValue = (type: string, value: string): boolean =>
  type === 'SRV' ? serviceValue.test(value) : isRecordValue(type, value)

// The DNS types that the description of set_dns2 names; it has srv for names below the domain only.
const types = { main: ['A', 'AAAA', 'CNAME', 'TXT', 'MX'], sub: ['A', 'AAAA', 'CNAME', 'TXT', 'MX', 'SRV'] }
const hostName = /^(?=.{1,253}$)(?:\*\.)?(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}$/

/** Why Dynadot cannot hold `set`, whatever else it holds; undefined when it can. */
export const validateRecordSet = ({ name, type, ttl, values }: RecordSet, zone: string): string | undefined => {
  if (!isAtOrBelow(name, zone) || !hostName.test(name)) return 'the name is not a name of this zone'
  if (!types[name === zone ? 'main' : 'sub'].includes(type)) return `Dynadot's API takes no ${type} record at this name`
  if (!Number.isInteger(ttl) || ttl < 1 || ttl > 2 ** 31 - 1) return 'the TTL is not between 1 and 2147483647 seconds'
  if (values.length === 0) return 'there is no value'
  if (values.some(value => !isValue(type, value))) return `a value is not one of a ${type} record`
  if (type === 'CNAME' && values.length > 1) return 'a name has one CNAME at most'
  return undefined
}

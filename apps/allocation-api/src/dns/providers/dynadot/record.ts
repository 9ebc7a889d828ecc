import { isAtOrBelow, type RecordSet, recordKey } from '../../domain/rrset.ts'
import { isRecordValue, quoteStrings } from '../../wire/rdata.ts'

/** A record in the format of Dynadot's API. Foreign records are written back unmodified. */
export interface DynadotRecord {
  /** `main`: of the domain itself; `sub`: of a name below it. The API has separate lists and limits. */
  readonly place: 'main' | 'sub'
  /** Relative to the domain; empty for `main`. */
  readonly host: string
  /** Upper or lower case: a DNS type, or one of Dynadot's types forward, stealth and email. */
  readonly type: string
  readonly value: string
  /** The distance of an MX record, or a parameter of Dynadot's types. Empty: none. */
  readonly extra: string
}

const quotedStrings = /^"(?:[^"\\]|\\.)*"(?: +"(?:[^"\\]|\\.)*")*$/
const plainString = /^"((?:[^"\\]|\\["\\])*)"$/
const serviceValue = /^\d{1,5} \d{1,5} \d{1,5} \S+$/

const absolute = (name: string): string => (name.endsWith('.') ? name : `${name}.`)
const relative = (name: string): string => (name === '.' ? name : name.replace(/\.$/, ''))

/**
 * Dynadot stores the bare text of a TXT record. Its documentation does not mention quotes: text that consists of quoted
 * strings is read as presentation format.
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
      // How the four fields are split is not documented: the second value, if any, is assumed to come first.
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

/** Groups `records` into record sets; all have the domain's TTL, in seconds. */
export const parseRecordSets = (records: readonly DynadotRecord[], zone: string, ttl: number): RecordSet[] =>
  Array.from(Map.groupBy(records, record => toKey(record, zone)).values()).flatMap(group => {
    const [first] = group
    if (!first) return []
    const values = Array.from(new Set(group.map(toPresentation))).sort()
    return [{ name: toName(first, zone), type: first.type.toUpperCase(), ttl, values }]
  })

/** `set` in the format of Dynadot's API. Its name must be at or below `zone`. */
export const toDynadotRecords = ({ name, type, values }: RecordSet, zone: string): DynadotRecord[] => {
  const place = name === zone ? 'main' : 'sub'
  const host = name === zone ? '' : name.slice(0, -zone.length - 1)
  return values.map(value => ({ place, host, type: type.toLowerCase(), ...toDynadotData(type, value) }))
}

const isValue = (type: string, value: string): boolean =>
  type === 'SRV' ? serviceValue.test(value) : isRecordValue(type, value)

// The DNS types in the documentation of set_dns2, which has srv only for names below the domain.
const types = { main: ['A', 'AAAA', 'CNAME', 'TXT', 'MX'], sub: ['A', 'AAAA', 'CNAME', 'TXT', 'MX', 'SRV'] }
const hostName = /^(?=.{1,253}$)(?:\*\.)?(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}$/

/** Why Dynadot cannot store `set`, regardless of other records; undefined: it can. */
export const validateRecordSet = ({ name, type, ttl, values }: RecordSet, zone: string): string | undefined => {
  if (!isAtOrBelow(name, zone) || !hostName.test(name)) return 'the name is not a name of this zone'
  if (!types[name === zone ? 'main' : 'sub'].includes(type))
    return `Dynadot's API does not support a ${type} record at this name`
  if (!Number.isInteger(ttl) || ttl < 1 || ttl > 2 ** 31 - 1) return 'the TTL is not between 1 and 2147483647 seconds'
  if (values.length === 0) return 'there is no value'
  if (values.some(value => !isValue(type, value))) return `a value is not a valid ${type} record`
  if (type === 'CNAME' && values.length > 1) return 'a name can have only one CNAME record'
  return undefined
}

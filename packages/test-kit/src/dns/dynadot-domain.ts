import { isIPv4 } from 'node:net'

/** A record as get_dns returns it and set_dns2 accepts it. `host` is empty in `main`. */
export interface DoubleRecord {
  readonly host: string
  /** Upper case. */
  readonly type: string
  readonly value: string
  /** Empty: none. */
  readonly extra: string
}

export interface DoubleDomain {
  readonly mode: string
  /** Seconds, as text. Empty: none. */
  readonly ttl: string
  readonly main: readonly DoubleRecord[]
  readonly sub: readonly DoubleRecord[]
}

const MAX_RECORDS = { main: 20, sub: 100 }

export const INITIAL_DOMAIN: DoubleDomain = { mode: 'Dynadot DNS', ttl: '3600', main: [], sub: [] }

export const createErrorResponse = (envelope: string, text: string) => ({
  [envelope]: { ResponseCode: '-1', Status: 'error', Error: text },
})

const toWireRecords = (records: readonly DoubleRecord[], place: 'main' | 'sub') =>
  records.map(({ host, type, value, extra }) => ({
    ...(place === 'sub' ? { Subhost: host } : {}),
    RecordType: type,
    Value: value,
    ...(extra === '' ? {} : { Value2: extra }),
  }))

export const createGetDnsResponse = ({ mode, ttl, main, sub }: DoubleDomain) => ({
  GetDnsResponse: {
    ResponseCode: 0,
    Status: 'success',
    GetDns: {
      NameServerSettings: {
        Type: mode,
        ...(main.length > 0 ? { MainDomains: toWireRecords(main, 'main') } : {}),
        ...(sub.length > 0 ? { SubDomains: toWireRecords(sub, 'sub') } : {}),
        ...(ttl === '' ? {} : { TTL: ttl }),
      },
    },
  },
})

/** The records of a request, or the reason why Dynadot rejects them. */
export const parseRecords = (
  query: URLSearchParams,
  place: 'main' | 'sub',
  validateRecord: (record: DoubleRecord) => string | undefined,
): DoubleRecord[] | string => {
  const records: DoubleRecord[] = []
  const indices = Array.from(query.keys()).flatMap(
    name => new RegExp(`^${place}_record_type(\\d+)$`).exec(name)?.[1] ?? [],
  )
  for (const index of indices.map(Number).sort((a, b) => a - b)) {
    if (index >= MAX_RECORDS[place]) return `only ${MAX_RECORDS[place]} ${place} records can be set`
    const type = query.get(`${place}_record_type${index}`) ?? ''
    const value = query.get(`${place}_record${index}`) ?? ''
    const host = place === 'main' ? '' : (query.get(`subdomain${index}`) ?? '')
    if (type === '' || type !== type.toLowerCase()) return 'invalid record type'
    if (value === '') return 'if record_type is entered, record must be entered'
    if (type === 'a' && !isIPv4(value)) return 'invalid ip address'
    const extra = query.get(`${place}_recordx${index}`) ?? ''
    if (type === 'mx' && !/^\d+$/.test(extra)) return 'invalid mx distance'
    const record = { host, type: type.toUpperCase(), value, extra }
    const rejection = validateRecord(record)
    if (rejection !== undefined) return rejection
    records.push(record)
  }
  return records
}

import { isIPv4 } from 'node:net'

/** As get_dns lists them and set_dns2 takes them; `host` is empty in `main`. */
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
  /** As the API writes it: seconds; empty: none. */
  readonly ttl: string
  readonly main: readonly DoubleRecord[]
  readonly sub: readonly DoubleRecord[]
}

const MOST = { main: 20, sub: 100 }

export const fresh: DoubleDomain = { mode: 'Dynadot DNS', ttl: '3600', main: [], sub: [] }

export const error = (envelope: string, text: string) => ({
  [envelope]: { ResponseCode: '-1', Status: 'error', Error: text },
})

const listOf = (records: readonly DoubleRecord[], place: 'main' | 'sub') =>
  records.map(({ host, type, value, extra }) => ({
    ...(place === 'sub' ? { Subhost: host } : {}),
    RecordType: type,
    Value: value,
    ...(extra === '' ? {} : { Value2: extra }),
  }))

export const got = ({ mode, ttl, main, sub }: DoubleDomain) => ({
  GetDnsResponse: {
    ResponseCode: 0,
    Status: 'success',
    GetDns: {
      NameServerSettings: {
        Type: mode,
        ...(main.length > 0 ? { MainDomains: listOf(main, 'main') } : {}),
        ...(sub.length > 0 ? { SubDomains: listOf(sub, 'sub') } : {}),
        ...(ttl === '' ? {} : { TTL: ttl }),
      },
    },
  },
})

/** The records that a request gives; a text: why Dynadot does not take them. */
export const toGivenSettings = (
  query: URLSearchParams,
  place: 'main' | 'sub',
  validateRecord: (record: DoubleRecord) => string | undefined,
): DoubleRecord[] | string => {
  const records: DoubleRecord[] = []
  const indices = Array.from(query.keys()).flatMap(
    name => new RegExp(`^${place}_record_type(\\d+)$`).exec(name)?.[1] ?? [],
  )
  for (const index of indices.map(Number).sort((a, b) => a - b)) {
    if (index >= MOST[place]) return `only ${MOST[place]} ${place} records can be set`
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

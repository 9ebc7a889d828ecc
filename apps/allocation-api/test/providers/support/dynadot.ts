import {
  type DoubleDomain,
  type DoubleRecord,
  type DynadotDoubleOptions,
  startDynadotDouble,
} from '@pool/test-kit/dns/dynadot-double.ts'
import { type RecordChange, type RecordSet, recordKey } from '../../../src/dns/domain/rrset.ts'
import { createDynadotProvider } from '../../../src/dns/providers/dynadot/index.ts'
import type { ProviderSubject } from '../conformance.ts'

const ONLY_TTL = 3_600
const named = new Set(['CNAME', 'MX', 'SRV'])

// Independent of the provider's conversion, so that an error there is not cancelled out here.
export const toDynadotRecord = (host: string, type: string, value: string): DoubleRecord => {
  const [distance = '', exchange = ''] = value.split(' ')
  if (type === 'MX') return { host, type, value: exchange.slice(0, -1), extra: distance }
  if (named.has(type)) return { host, type, value: value.slice(0, -1), extra: '' }
  const bare = type === 'TXT' ? /^"([^"\\]*)"$/.exec(value)?.[1] : undefined
  return { host, type, value: bare ?? value, extra: '' }
}

const toPresentation = ({ type, value, extra }: DoubleRecord): string => {
  const text = [extra, value].filter(part => part !== '').join(' ')
  if (named.has(type)) return `${text}.`
  return type === 'TXT' && !value.startsWith('"') ? `"${value}"` : text
}

/** The record sets of a domain in presentation format, sorted by name and type. */
export const listDynadotRecordSets = ({ main, sub, ttl }: DoubleDomain, zone: string): RecordSet[] => {
  const groups = Map.groupBy([...main, ...sub], ({ host, type }) =>
    recordKey({ name: host === '' ? zone : `${host}.${zone}`, type }),
  )
  return Array.from(groups, ([key, group]): RecordSet => {
    const [name = '', type = ''] = key.split(' ')
    return { name, type, ttl: Number(ttl), values: group.map(toPresentation).sort() }
  }).sort((a, b) => (recordKey(a) < recordKey(b) ? -1 : 1))
}

export const signal = () => AbortSignal.timeout(120_000)

export const upsert = (name: string, ttl = 300, ...values: string[]): RecordChange => ({
  kind: 'upsert',
  set: { name, type: 'A', ttl, values: values.length > 0 ? values : ['192.0.2.1'] },
})

let count = 0

/** One domain in a separate Dynadot account, on a double. */
export const startDynadotSubject = async (options: Omit<DynadotDoubleOptions, 'domains' | 'apiKey'> = {}) => {
  count += 1
  const zone = `conformance${count}.example`
  const apiKey = `s3cret-of-account-${count}`
  const wrongKey = `an0ther-secret-${count}`
  const double = await startDynadotDouble({ domains: [zone], apiKey, ...options })
  const toHost = (name: string) => (name === zone ? '' : name.slice(0, -zone.length - 1))
  const without = (list: readonly DoubleRecord[], name: string, type: string) =>
    list.filter(record => record.host !== toHost(name) || record.type !== type)

  const subject = {
    provider: createDynadotProvider({ url: double.url, apiKey }),
    withWrongKey: createDynadotProvider({ url: double.url, apiKey: wrongKey }),
    zone,
    maxRecordSets: 100,
    onlyTtl: ONLY_TTL,
    secrets: [apiKey, wrongKey],
    double,
    records: async () => listDynadotRecordSets(double.domain(zone), zone),
    async put({ name, type, values }: RecordSet) {
      const place = name === zone ? 'main' : 'sub'
      const others = without(double.domain(zone)[place], name, type)
      double.change(zone, { [place]: [...others, ...values.map(value => toDynadotRecord(toHost(name), type, value))] })
    },
    async remove(name: string, type: string) {
      const { main, sub } = double.domain(zone)
      double.change(zone, { main: without(main, name, type), sub: without(sub, name, type) })
    },
    stop: () => double.stop(),
    start: () => double.start(),
    [Symbol.asyncDispose]: () => double[Symbol.asyncDispose](),
  }
  return subject satisfies ProviderSubject
}

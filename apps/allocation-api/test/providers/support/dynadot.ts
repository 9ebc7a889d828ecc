import type { DoubleRecord } from '@pool/test-kit/dns/dynadot-domain.ts'
import { type DynadotDoubleOptions, startDynadotDouble } from '@pool/test-kit/dns/dynadot-double.ts'
import { type RecordChange, type RecordSet, recordKey } from '../../../src/dns/domain/rrset.ts'
import { createDynadotProvider } from '../../../src/dns/providers/dynadot/index.ts'
import type { ProviderSubject } from '../harness.ts'

const ONLY_TTL = 3_600
const named = new Set(['CNAME', 'MX', 'SRV'])

// Told apart from the provider's own rules, so that a fault of theirs is not undone here.
const storedOf = (host: string, type: string, value: string): DoubleRecord => {
  const [distance = '', exchange = ''] = value.split(' ')
  if (type === 'MX') return { host, type, value: exchange.slice(0, -1), extra: distance }
  if (named.has(type)) return { host, type, value: value.slice(0, -1), extra: '' }
  const bare = type === 'TXT' ? /^"([^"\\]*)"$/.exec(value)?.[1] : undefined
  return { host, type, value: bare ?? value, extra: '' }
}

const shownOf = ({ type, value, extra }: DoubleRecord): string => {
  const text = [extra, value].filter(part => part !== '').join(' ')
  if (named.has(type)) return `${text}.`
  return type === 'TXT' && !value.startsWith('"') ? `"${value}"` : text
}

export const patience = () => AbortSignal.timeout(20_000)

export const upsert = (name: string, ttl = 300, ...values: string[]): RecordChange => ({
  kind: 'upsert',
  set: { name, type: 'A', ttl, values: values.length > 0 ? values : ['192.0.2.1'] },
})

let count = 0

/** A domain of a Dynadot account of its own, on a double. */
export const startDynadotSubject = async (options: Omit<DynadotDoubleOptions, 'domains' | 'apiKey'> = {}) => {
  count += 1
  const zone = `conformance${count}.example`
  const apiKey = `s3cret-of-account-${count}`
  const wrongKey = `an0ther-secret-${count}`
  const double = await startDynadotDouble({ domains: [zone], apiKey, ...options })
  const hostOf = (name: string) => (name === zone ? '' : name.slice(0, -zone.length - 1))
  const without = (list: readonly DoubleRecord[], name: string, type: string) =>
    list.filter(record => record.host !== hostOf(name) || record.type !== type)

  const subject = {
    provider: createDynadotProvider({ url: double.url, apiKey }),
    withWrongKey: createDynadotProvider({ url: double.url, apiKey: wrongKey }),
    zone,
    mostRecordSets: 100,
    onlyTtl: ONLY_TTL,
    secrets: [apiKey, wrongKey],
    double,
    async records() {
      const { main, sub, ttl } = double.domain(zone)
      const groups = Map.groupBy([...main, ...sub], ({ host, type }) =>
        recordKey({ name: host === '' ? zone : `${host}.${zone}`, type }),
      )
      return Array.from(groups, ([key, group]): RecordSet => {
        const [name = '', type = ''] = key.split(' ')
        return { name, type, ttl: Number(ttl), values: group.map(shownOf).sort() }
      }).sort((a, b) => (recordKey(a) < recordKey(b) ? -1 : 1))
    },
    async put({ name, type, values }: RecordSet) {
      const place = name === zone ? 'main' : 'sub'
      const others = without(double.domain(zone)[place], name, type)
      double.change(zone, { [place]: [...others, ...values.map(value => storedOf(hostOf(name), type, value))] })
    },
    async remove(name: string, type: string) {
      const { main, sub } = double.domain(zone)
      double.change(zone, { main: without(main, name, type), sub: without(sub, name, type) })
    },
    goAway: () => double.stop(),
    comeBack: () => double.start(),
    [Symbol.asyncDispose]: () => double[Symbol.asyncDispose](),
  }
  return subject satisfies ProviderSubject
}

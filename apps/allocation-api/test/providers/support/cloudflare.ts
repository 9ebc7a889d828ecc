import {
  type CloudflareDouble,
  type CloudflareDoubleOptions,
  startCloudflareDouble,
  type WireRecord,
} from '@pool/test-kit/dns/cloudflare-double.ts'
import type { RecordSet } from '../../../src/dns/domain/rrset.ts'
import { createCloudflareProvider } from '../../../src/dns/providers/cloudflare/index.ts'
import type { ProviderSubject, StartSubject } from '../conformance.ts'

const withoutDot = (name: string): string => name.replace(/\.$/, '')

/** Independent of the provider's conversion, so that an error there is not cancelled out here. */
const toWireFields = (type: string, value: string): Partial<WireRecord> => {
  const words = value.split(' ')
  if (type === 'CNAME' || type === 'NS') return { content: withoutDot(value) }
  if (type === 'MX') return { priority: Number(words[0]), content: withoutDot(words[1] ?? '') }
  if (type === 'SRV') {
    const [priority = 0, weight = 0, port = 0] = words.slice(0, 3).map(Number)
    const target = withoutDot(words[3] ?? '')
    return { priority, content: `${weight} ${port} ${target}`, data: { priority, weight, port, target } }
  }
  if (type === 'CAA') {
    const data = { flags: Number(words[0]), tag: words[1], value: words.slice(2).join(' ').slice(1, -1) }
    return { content: value, data }
  }
  if (type === 'DS') {
    const [key_tag, algorithm, digest_type] = words.map(Number)
    return { content: value, data: { key_tag, algorithm, digest_type, digest: words[3] } }
  }
  return { content: value }
}

const toPresentation = ({ type, content, priority }: WireRecord): string => {
  if (type === 'CNAME' || type === 'NS') return `${content}.`
  if (type === 'MX' || type === 'SRV') return `${priority} ${content}.`
  return content
}

/** The record sets in a zone of the double. */
export const listRecordSets = (double: CloudflareDouble, zone: string): RecordSet[] =>
  Array.from(
    Map.groupBy(double.records(zone), ({ name, type }) => `${name} ${type}`),
    ([key, records]) => {
      const [name = '', type = ''] = key.split(' ')
      return { name, type, ttl: records[0]?.ttl ?? 0, values: records.map(toPresentation).sort() }
    },
  ).sort((a, b) => (`${a.name} ${a.type}` < `${b.name} ${b.type}` ? -1 : 1))

/** Writes a record set into a zone of the double as another client, with a comment and a tag. */
export const putRecordSet = (double: CloudflareDouble, zone: string, { name, type, ttl, values }: RecordSet): void => {
  double.remove(zone, record => record.name === name && record.type === type)
  for (const value of values)
    double.put(zone, { name, type, ttl, ...toWireFields(type, value), comment: 'not ours', tags: ['team:other'] })
}

export interface CloudflareSubject extends ProviderSubject {
  readonly double: CloudflareDouble
}

let subjects = 0

export const startCloudflareSubject = async (
  options: CloudflareDoubleOptions & { readonly plan?: 'free' | 'pro' } = {},
): Promise<CloudflareSubject> => {
  const double = await startCloudflareDouble(options)
  subjects += 1
  const zone = `pool${subjects}.example`
  double.addZone(zone, options.plan)
  const wrongKey = `wrong-${double.token}`
  const provider = createCloudflareProvider({ url: double.url, apiToken: double.token })
  const withWrongKey = createCloudflareProvider({ url: double.url, apiToken: wrongKey })
  return {
    double,
    provider,
    zone,
    withWrongKey,
    secrets: [double.token, wrongKey],
    records: async () => listRecordSets(double, zone),
    put: async set => putRecordSet(double, zone, set),
    remove: async (name, type) => double.remove(zone, record => record.name === name && record.type === type),
    stop: double.stop,
    start: double.start,
    async [Symbol.asyncDispose]() {
      await provider.close()
      await withWrongKey.close()
      await double[Symbol.asyncDispose]()
    },
  }
}

export const startSubject: StartSubject = () => startCloudflareSubject()

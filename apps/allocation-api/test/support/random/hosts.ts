import type { Sql } from '@pool/database/client'
import type { DoubleRecord } from '@pool/test-kit/dns/dynadot-domain.ts'
import { startDynadotDouble } from '@pool/test-kit/dns/dynadot-double.ts'
import type { PowerdnsServer } from '@pool/test-kit/dns/powerdns.ts'
import { type RecordChange, type RecordSet, recordKey } from '../../../src/dns/domain/rrset.ts'
import { createDynadotProvider } from '../../../src/dns/providers/dynadot/index.ts'
import { createLocalProvider } from '../../../src/dns/providers/local/provider.ts'
import { createZoneTable } from '../../../src/dns/providers/local/zone-table.ts'
import { createPowerdnsProvider } from '../../../src/dns/providers/powerdns/index.ts'
import type { ZoneHost } from './zone-host.ts'

export type StartZoneHost = (sql: Sql) => Promise<ZoneHost>

/** The zone is a table in the lane's own database. */
export const startLocalHost: StartZoneHost = async sql => {
  const table = createZoneTable(sql)
  await table.install()
  const createProvider = () => createLocalProvider({ table: createZoneTable(sql), onError: () => {} })
  return {
    isWholeSet: false,
    addZone: async () => {},
    records: async zone => (await table.read(zone, 'all')).records.slice(),
    async edit(zone, { remove, put }) {
      const changes: RecordChange[] = [
        ...remove.map(key => ({ kind: 'delete' as const, ...key })),
        ...put.map(set => ({ kind: 'upsert' as const, set })),
      ]
      for (;;) {
        const { serial } = await table.read(zone, [])
        if ((await table.apply(zone, changes, serial)) !== null) return
      }
    },
    createProvider,
    createHeedlessProvider: createProvider,
    env: { DNSPROVIDER_KIND: 'local' },
    [Symbol.asyncDispose]: async () => {},
  }
}

/** A zone of its own for each interleaving on a server that is shared. */
export const powerdnsHostOn =
  (server: PowerdnsServer): StartZoneHost =>
  async () => {
    const createProvider = () => createPowerdnsProvider(server.options)
    return {
      isWholeSet: false,
      addZone: server.createZone,
      records: server.records,
      edit: server.edit,
      createProvider,
      createHeedlessProvider: createProvider,
      env: {},
      [Symbol.asyncDispose]: async () => {},
    }
  }

/** Told apart from the provider's own rules, so that a fault of theirs is not undone here. */
const storedOf = (host: string, type: string, value: string): DoubleRecord => {
  const [distance = '', exchange = ''] = value.split(' ')
  if (type === 'MX') return { host, type, value: exchange.slice(0, -1), extra: distance }
  if (type === 'CNAME' || type === 'SRV') return { host, type, value: value.slice(0, -1), extra: '' }
  return { host, type, value: type === 'TXT' ? value.slice(1, -1) : value, extra: '' }
}

const shownOf = ({ type, value, extra }: DoubleRecord): string => {
  if (type === 'MX') return `${extra} ${value}.`
  if (type === 'CNAME' || type === 'SRV') return `${value}.`
  return type === 'TXT' ? `"${value}"` : value
}

/** An account of its own for each lane: it takes one call at a time. */
export const startDynadotHost: StartZoneHost = async () => {
  const apiKey = 'key-of-the-lane'
  const host: ZoneHost & { httpFaultOf: NonNullable<ZoneHost['httpFaultOf']> } = {
    isWholeSet: true,
    onlyTtl: 3_600,
    httpFaultOf: () => undefined,
    effects: () => double.calls.effects,
    addZone: async zone => double.change(zone, {}),
    async records(zone) {
      const { main, sub, ttl } = double.domain(zone)
      const groups = Map.groupBy([...main, ...sub], ({ host: label, type }) =>
        recordKey({ name: label === '' ? zone : `${label}.${zone}`, type }),
      )
      return Array.from(groups, ([key, group]): RecordSet => {
        const [name = '', type = ''] = key.split(' ')
        return { name, type, ttl: Number(ttl), values: group.map(shownOf).sort() }
      })
    },
    async edit(zone, { remove, put }) {
      const gone = new Set([...remove, ...put].map(recordKey))
      const hostOf = (name: string) => (name === zone ? '' : name.slice(0, -zone.length - 1))
      const { main, sub } = double.domain(zone)
      const kept = (records: readonly DoubleRecord[]) =>
        records.filter(({ host: label, type }) => !gone.has(`${label === '' ? zone : `${label}.${zone}`} ${type}`))
      const added = put.flatMap(({ name, type, values }) => values.map(value => storedOf(hostOf(name), type, value)))
      double.change(zone, {
        main: [...kept(main), ...added.filter(record => record.host === '')],
        sub: [...kept(sub), ...added.filter(record => record.host !== '')],
      })
    },
    createProvider: () => createDynadotProvider({ url: double.url, apiKey }),
    get env() {
      return {
        DNSPROVIDER_KIND: 'dynadot',
        DNSPROVIDER_DYNADOT_URL: double.url,
        DNSPROVIDER_DYNADOT_API_KEY: apiKey,
      }
    },
    [Symbol.asyncDispose]: () => double[Symbol.asyncDispose](),
  }
  const double = await startDynadotDouble({ domains: [], apiKey, nextFault: command => host.httpFaultOf(command) })
  return host
}

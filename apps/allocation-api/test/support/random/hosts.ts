import type { Sql } from '@pool/runtime/database/client'
import { startCloudflareDouble } from '@pool/test-kit/dns/cloudflare-double.ts'
import {
  type DoubleRecord,
  type DynadotCommand,
  type DynadotFault,
  startDynadotDouble,
} from '@pool/test-kit/dns/dynadot-double.ts'
import type { PowerdnsServer } from '@pool/test-kit/dns/powerdns.ts'
import { withoutZoneMarker } from '@pool/test-kit/dns/zone-marker.ts'
import { type RecordChange, type RecordSet, recordKey } from '../../../src/dns/domain/rrset.ts'
import type { DnsProvider, ZoneOf } from '../../../src/dns/provider.ts'
import { createCloudflareProvider } from '../../../src/dns/providers/cloudflare/index.ts'
import { createDynadotProvider } from '../../../src/dns/providers/dynadot/index.ts'
import { createLocalProvider, createZoneTable } from '../../../src/dns/providers/local/provider.ts'
import { createPowerdnsProvider } from '../../../src/dns/providers/powerdns/index.ts'
import { createRfc2136Provider } from '../../../src/dns/providers/rfc2136/index.ts'
import { listRecordSets, putRecordSet } from '../../providers/support/cloudflare.ts'
import { listDynadotRecordSets, toDynadotRecord } from '../../providers/support/dynadot.ts'
import type { Server } from '../../providers/support/rfc2136.ts'

/** An atomic edit of a zone that bypasses the API. */
export interface Edit {
  readonly remove: readonly { readonly name: string; readonly type: string }[]
  readonly put: readonly RecordSet[]
}

/** The provider that hosts the zones of one worker. Its `edit` bypasses the API. */
export interface ZoneHost extends AsyncDisposable {
  addZone(zone: string): Promise<void>
  /** The records of the zone, without SOA and NS of the apex. */
  records(zone: string): Promise<RecordSet[]>
  edit(zone: string, edit: Edit): Promise<void>
  /** Default: each pool is a zone. */
  createProvider(zoneOf?: ZoneOf): DnsProvider
  /** Environment with which an API process uses this host. */
  readonly env: Readonly<Record<string, string>>
  /** Creates a provider that ignores later changes, as a late write does. Absent: this host has no late writes. */
  createUnconditionalProvider?(): DnsProvider
  /** The TTL of all records, in seconds. Absent: each record set has its own. */
  readonly fixedTtl?: number
  /** Types, beyond the usual ones, of which the zone can have records below a name. */
  readonly typesBelow?: readonly string[]
  /** A write replaces the whole zone, so concurrent external edits are lost. */
  readonly replacesZone: boolean
  /** Only for a host with an HTTP API: the fault of the next request. */
  nextHttpFault?: (command: DynadotCommand) => DynadotFault | undefined
  /** The number of writes that have taken effect. */
  countEffects?(): number
}

const eachIsZone: ZoneOf = pool => pool

export type StartZoneHost = (sql: Sql) => Promise<ZoneHost>

/** The zone is a table in the worker's database. */
export const startLocalHost: StartZoneHost = async sql => {
  const table = createZoneTable(sql)
  const createProvider = () => createLocalProvider({ table: createZoneTable(sql), onError: () => {} })
  return {
    replacesZone: false,
    typesBelow: ['NS', 'DS', 'DNAME', 'TYPE65280'],
    addZone: async () => {},
    records: async zone => withoutZoneMarker((await table.read(zone, [zone])).records),
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
    createUnconditionalProvider: createProvider,
    env: { DNSPROVIDER_KIND: 'local' },
    [Symbol.asyncDispose]: async () => {},
  }
}

/** All interleavings share the server. Each has its own zone. */
export const createPowerdnsHostStarter =
  (server: PowerdnsServer): StartZoneHost =>
  async () => {
    const createProvider = (zoneOf = eachIsZone) => createPowerdnsProvider({ ...server.options, zoneOf })
    return {
      replacesZone: false,
      typesBelow: ['NS', 'DS', 'DNAME', 'TYPE65280'],
      addZone: server.createZone,
      records: async zone => withoutZoneMarker(await server.records(zone)),
      edit: server.edit,
      createProvider,
      createUnconditionalProvider: createProvider,
      env: {},
      [Symbol.asyncDispose]: async () => {},
    }
  }

/** All interleavings share the server, which has a zone for each. */
export const createRfc2136HostStarter =
  (server: Server): StartZoneHost =>
  async () => {
    const createProvider = (zoneOf = eachIsZone) => createRfc2136Provider({ ...server.options(), zoneOf })
    return {
      replacesZone: false,
      // BIND ignores a DS record set without NS at the same name.
      typesBelow: ['NS', 'DNAME', 'TYPE65280'],
      addZone: async () => {},
      records: async zone => withoutZoneMarker(await server.records(zone)),
      edit: server.edit,
      createProvider,
      createUnconditionalProvider: createProvider,
      env: {},
      [Symbol.asyncDispose]: async () => {},
    }
  }

/** Each worker has its own account. */
export const startCloudflareHost: StartZoneHost = async () => {
  const double = await startCloudflareDouble()
  const createProvider = (zoneOf = eachIsZone) =>
    createCloudflareProvider({ url: double.url, apiToken: double.token, zoneOf })
  return {
    replacesZone: false,
    typesBelow: ['NS', 'DS', 'TYPE65280'],
    addZone: async zone => void double.addZone(zone),
    records: async zone => withoutZoneMarker(listRecordSets(double, zone)),
    async edit(zone, { remove, put }) {
      for (const key of remove) double.remove(zone, ({ name, type }) => name === key.name && type === key.type)
      for (const set of put) putRecordSet(double, zone, set)
    },
    createProvider,
    createUnconditionalProvider: createProvider,
    env: {},
    [Symbol.asyncDispose]: () => double[Symbol.asyncDispose](),
  }
}

/** Each worker has its own account, because an account handles one call at a time. */
export const startDynadotHost: StartZoneHost = async () => {
  const apiKey = 'key-of-the-worker'
  const host: ZoneHost & { nextHttpFault: NonNullable<ZoneHost['nextHttpFault']> } = {
    replacesZone: true,
    fixedTtl: 3_600,
    nextHttpFault: () => undefined,
    countEffects: () => double.calls.effects,
    addZone: async zone => double.change(zone, {}),
    records: async zone => withoutZoneMarker(listDynadotRecordSets(double.domain(zone), zone)),
    async edit(zone, { remove, put }) {
      const removed = new Set([...remove, ...put].map(recordKey))
      const toHost = (name: string) => (name === zone ? '' : name.slice(0, -zone.length - 1))
      const { main, sub } = double.domain(zone)
      const withoutRemoved = (records: readonly DoubleRecord[]) =>
        records.filter(({ host: label, type }) => !removed.has(`${label === '' ? zone : `${label}.${zone}`} ${type}`))
      const added = put.flatMap(({ name, type, values }) =>
        values.map(value => toDynadotRecord(toHost(name), type, value)),
      )
      double.change(zone, {
        main: [...withoutRemoved(main), ...added.filter(record => record.host === '')],
        sub: [...withoutRemoved(sub), ...added.filter(record => record.host !== '')],
      })
    },
    createProvider: (zoneOf = eachIsZone) => createDynadotProvider({ url: double.url, apiKey, zoneOf }),
    get env() {
      return {
        DNSPROVIDER_KIND: 'dynadot',
        PDM_TEST_SETTINGS: JSON.stringify({ providerUrl: double.url }),
        DNSPROVIDER_DYNADOT_API_KEY: apiKey,
      }
    },
    [Symbol.asyncDispose]: () => double[Symbol.asyncDispose](),
  }
  const double = await startDynadotDouble({ domains: [], apiKey, nextFault: command => host.nextHttpFault(command) })
  return host
}

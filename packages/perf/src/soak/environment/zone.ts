import { Resolver } from 'node:dns/promises'
import type { Sql } from '@pool/runtime/database/client'
import { missingPowerdns, startPowerdns, type ZoneEdit, type ZoneRecordSet } from '@pool/test-kit/dns/powerdns.ts'
import { withoutZoneMarker } from '@pool/test-kit/dns/zone-marker.ts'
import { until } from '@pool/test-kit/poll.ts'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import { createZoneTable } from 'allocation-api/src/dns/providers/local/provider.ts'
import type { RecordEdit } from '../checks/addresses.ts'
import type { ForeignRecord } from '../checks/foreign-records.ts'
import type { LogSecretScanner } from './log-secrets.ts'

export const ZONE = 'pool.test'

/** The zone at its provider. `records` and `edit` bypass the API and the proxy. */
export interface Zone {
  readonly kind: 'powerdns' | 'local'
  /** Why PowerDNS is not used. */
  readonly missing: string | undefined
  readonly env: Readonly<Record<string, string>>
  /** Without the record in which the service numbers its writes. Waits for a killed server to restart. */
  readonly records: () => Promise<readonly ZoneRecordSet[]>
  readonly edit: (edit: ZoneEdit) => Promise<void>
  /** Queries the DNS server for the addresses of a name. Null: it does not respond. */
  readonly addresses: (name: string) => Promise<readonly string[] | null>
  /** What the soak wrote at or below names of the pool, in order. */
  readonly foreignRecords: ForeignRecord[]
  /** Changes of records of the service. */
  readonly recordEdits: RecordEdit[]
  /** Null: the provider is part of the API's process and has no faults of its own. */
  readonly server: {
    readonly link: TcpProxy
    readonly stop: () => Promise<void>
    readonly start: () => Promise<void>
  } | null
}

/** No client can have this name: a pool is below it. */
export const COVERING_NAME = 'n5'
/** Its records are in the same zone. */
export const LOWER_POOL = `lower.${COVERING_NAME}.${ZONE}`

/** Records of other writers outside all names that a client can have. They must not change. */
export const FIXED_RECORDS: readonly ZoneRecordSet[] = [
  { name: ZONE, type: 'MX', ttl: 300, values: ['10 mail.example.'] },
  { name: ZONE, type: 'TXT', ttl: 300, values: ['"not ours"'] },
  { name: `xn0.${ZONE}`, type: 'TXT', ttl: 300, values: ['"beside a pool name"'] },
  { name: `*.wild.${ZONE}`, type: 'AAAA', ttl: 300, values: ['2001:db8::1'] },
  { name: `deep.down.${ZONE}`, type: 'CNAME', ttl: 300, values: ['host.example.'] },
  { name: `www.${ZONE}`, type: 'A', ttl: 300, values: ['198.51.100.1', '198.51.100.2'] },
  { name: `host.${LOWER_POOL}`, type: 'A', ttl: 300, values: ['198.51.100.3'] },
]

const firstForeignRecords: readonly (readonly [subdomain: string, set: ZoneRecordSet])[] = [
  ['n0', { name: `n0.${ZONE}`, type: 'TXT', ttl: 300, values: ['"next to a pool name"'] }],
  ['n1', { name: `*.n1.${ZONE}`, type: 'AAAA', ttl: 300, values: ['2001:db8::1'] }],
  ['n2', { name: `deep.n2.${ZONE}`, type: 'CNAME', ttl: 300, values: ['host.example.'] }],
]

/** Writes record sets as another writer. If that fails, their `end` stays infinite: they may have been written. */
export const writeForeignRecords = async (
  { edit, foreignRecords }: Pick<Zone, 'edit' | 'foreignRecords'>,
  records: readonly Pick<ForeignRecord, 'subdomain' | 'set' | 'isOverwrite'>[],
  remove: ZoneEdit['remove'] = [],
): Promise<void> => {
  const start = Date.now()
  const first = foreignRecords.length
  foreignRecords.push(...records.map(record => ({ ...record, start, end: Number.POSITIVE_INFINITY })))
  await edit({ remove, put: records.map(({ set }) => set) })
  const end = Date.now()
  records.forEach((record, index) => {
    foreignRecords[first + index] = { ...record, start, end }
  })
}

/** Retries while the server does not accept connections. */
const retryUntilUp = async <Result>(call: () => Promise<Result>): Promise<Result> => {
  const { result } = await until('the DNS server accepts connections', () =>
    call().then(
      result => ({ result }),
      // The error of `fetch` without a connection, or when it breaks.
      (error: unknown) => (error instanceof TypeError ? undefined : Promise.reject(error)),
    ),
  )
  return result
}

const QUERY_TIMEOUT_MS = 1_000

/** Queries the server on this port over UDP. */
const createAddressQuery = (port: number): Zone['addresses'] => {
  const resolver = new Resolver({ timeout: QUERY_TIMEOUT_MS, tries: 1 })
  resolver.setServers([`127.0.0.1:${port}`])
  return name =>
    resolver.resolve4(name).catch(error => (['ENOTFOUND', 'ENODATA'].includes(String(error?.code)) ? [] : null))
}

/** The API's local provider, whose zone is a table in its database. */
const openLocalZone = async (sql: Sql): Promise<Zone> => {
  const table = createZoneTable(sql)
  return {
    kind: 'local',
    missing: missingPowerdns,
    env: { DNSPROVIDER_KIND: 'local' },
    foreignRecords: [],
    recordEdits: [],
    addresses: name =>
      table.read(ZONE, [ZONE]).then(
        ({ records }) => records.find(set => set.name === name && set.type === 'A')?.values ?? [],
        () => null,
      ),
    records: async () => withoutZoneMarker((await table.read(ZONE, [ZONE])).records),
    async edit({ remove, put }) {
      const changes = [
        ...remove.map(({ name, type }) => ({ kind: 'delete' as const, name, type })),
        ...put.map(set => ({ kind: 'upsert' as const, set })),
      ]
      for (;;) {
        const { serial } = await table.read(ZONE, [])
        if ((await table.apply(ZONE, changes, serial)) !== null) return
      }
    },
    server: null,
  }
}

const startPowerdnsZone = async (scanner: LogSecretScanner, cleanup: AsyncDisposableStack): Promise<Zone> => {
  const starting = startPowerdns()
  cleanup.defer(async () => (await starting.catch(() => undefined))?.[Symbol.asyncDispose]())
  const server = await starting
  scanner.add('the DNS API key', server.options.apiKey)
  const link = await startTcpProxy(Number(new URL(server.options.url).port))
  cleanup.defer(() => link.close())
  await server.createZone(ZONE)
  return {
    kind: 'powerdns',
    missing: undefined,
    env: {
      DNSPROVIDER_KIND: 'powerdns',
      DNSPROVIDER_POWERDNS_URL: `http://127.0.0.1:${link.port}`,
      DNSPROVIDER_POWERDNS_API_KEY: server.options.apiKey,
    },
    foreignRecords: [],
    recordEdits: [],
    addresses: createAddressQuery(server.dnsPort),
    edit: edit => retryUntilUp(() => server.edit(ZONE, edit)),
    records: async () => withoutZoneMarker(await retryUntilUp(() => server.records(ZONE))),
    server: { link, stop: server.stop, start: server.start },
  }
}

/** PowerDNS behind a proxy if it is installed, otherwise the API's local provider. */
export const startZone = async (sql: Sql, scanner: LogSecretScanner, cleanup: AsyncDisposableStack): Promise<Zone> => {
  const zone = missingPowerdns ? await openLocalZone(sql) : await startPowerdnsZone(scanner, cleanup)
  await zone.edit({ remove: [], put: FIXED_RECORDS })
  await writeForeignRecords(
    zone,
    firstForeignRecords.map(([subdomain, set]) => ({ subdomain, set, isOverwrite: false })),
  )
  return zone
}

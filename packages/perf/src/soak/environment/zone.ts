import type { Sql } from '@pool/database/client'
import { until } from '@pool/test-kit/poll.ts'
import { startTcpProxy, type TcpProxy } from '@pool/test-kit/tcp-proxy.ts'
import type { RecordSet } from 'allocation-api/src/dns/domain/rrset.ts'
import { lacksPowerdns, startPowerdns } from 'allocation-api/test/providers/support/powerdns.ts'
import { powerdnsHostOn, startLocalHost } from 'allocation-api/test/support/random/hosts.ts'
import type { ZoneHost } from 'allocation-api/test/support/random/zone-host.ts'
import type { SecretWatch } from './secrets.ts'

export const ZONE = 'pool.test'

/** Where the records go, and what can be done to it. */
export interface Zone {
  readonly kind: 'powerdns' | 'local'
  readonly lacks: string | undefined
  readonly env: Readonly<Record<string, string>>
  /** Past every proxy; as soon as the server serves, if it was killed. */
  readonly records: () => Promise<RecordSet[]>
  readonly edit: ZoneHost['edit']
  /** Null: the provider is in the API's own process, and shares its faults. */
  readonly server: {
    readonly link: TcpProxy
    readonly stop: () => Promise<void>
    readonly start: () => Promise<void>
  } | null
}

/** Somebody else's, beside the names and at some of them; they have to be there, as they are, at any rest. */
export const foreign: readonly RecordSet[] = [
  { name: ZONE, type: 'MX', ttl: 300, values: ['10 mail.example.'] },
  { name: ZONE, type: 'TXT', ttl: 300, values: ['"not ours"'] },
  { name: `n0.${ZONE}`, type: 'TXT', ttl: 300, values: ['"beside a name of ours"'] },
  { name: `*.n1.${ZONE}`, type: 'AAAA', ttl: 300, values: ['2001:db8::1'] },
  { name: `deep.n2.${ZONE}`, type: 'CNAME', ttl: 300, values: ['host.example.'] },
  { name: `www.${ZONE}`, type: 'A', ttl: 300, values: ['198.51.100.1', '198.51.100.2'] },
]

const onceItServes = async <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
  const { answer } = await until('the DNS server serves', () =>
    call().then(
      answer => ({ answer }),
      // What `fetch` says where there is no connection, or no more.
      (error: unknown) => (error instanceof TypeError ? undefined : Promise.reject(error)),
    ),
  )
  return answer
}

/** A PowerDNS where there is one, behind a proxy; else the provider of the API itself. */
export const startZone = async (sql: Sql, watch: SecretWatch, cleanup: AsyncDisposableStack): Promise<Zone> => {
  if (lacksPowerdns) {
    const host = await startLocalHost(sql)
    await host.edit(ZONE, { remove: [], put: foreign })
    const { env, edit } = host
    return { kind: 'local', lacks: lacksPowerdns, env, edit, records: () => host.records(ZONE), server: null }
  }
  const starting = startPowerdns()
  cleanup.defer(async () => (await starting.catch(() => undefined))?.[Symbol.asyncDispose]())
  const server = await starting
  watch.add('the DNS API key', server.options.apiKey)
  const link = await startTcpProxy(Number(new URL(server.options.url).port))
  cleanup.defer(() => link.close())
  const host = await powerdnsHostOn(server)(sql)
  await host.addZone(ZONE)
  await host.edit(ZONE, { remove: [], put: foreign })
  return {
    kind: 'powerdns',
    lacks: undefined,
    env: {
      DNSPROVIDER_KIND: 'powerdns',
      DNSPROVIDER_POWERDNS_URL: `http://127.0.0.1:${link.port}`,
      DNSPROVIDER_POWERDNS_API_KEY: server.options.apiKey,
    },
    edit: (zone, edits) => onceItServes(() => host.edit(zone, edits)),
    records: () => onceItServes(() => host.records(ZONE)),
    server: { link, stop: server.stop, start: server.start },
  }
}

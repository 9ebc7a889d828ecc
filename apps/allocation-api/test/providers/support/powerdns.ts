import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@pool/dev-server/ports'
import { findProgram, startServerAndWait } from '@pool/dev-server/server-process'
import { pdnsSchema, writePdnsFiles } from '@pool/test-kit/dns/pdns-files.ts'
import { type RecordSet, recordKey } from '../../../src/dns/domain/rrset.ts'
import { createPowerdnsProvider, type PowerdnsOptions } from '../../../src/dns/providers/powerdns/index.ts'
import type { ProviderSubject } from '../harness.ts'

const program = findProgram('pdns_server')

/** What is not installed, and how to install it; undefined: all is there. */
export const lacksPowerdns =
  program !== undefined && pdnsSchema !== undefined
    ? undefined
    : 'PowerDNS is not installed, its tests are skipped: apt-get install pdns-server pdns-backend-sqlite3'
export const lacksDig = findProgram('dig')
  ? undefined
  : 'dig is not installed, one test is skipped: apt-get install bind9-dnsutils'

export interface PowerdnsServer extends AsyncDisposable {
  /** What a provider needs to reach it. */
  readonly options: PowerdnsOptions
  /** Where it answers queries, on 127.0.0.1 over UDP and TCP. */
  readonly dnsPort: number
  /** One call of its API under `/api/v1/servers/localhost`; a status other than 2xx is an error, 404 excepted. */
  readonly call: (method: string, path: string, body?: unknown) => Promise<unknown>
  /** Makes a zone with SOA and NS; an error when it is there. */
  readonly createZone: (zone: string) => Promise<void>
  /** Every record set that is served, but SOA and NS of the apex; sorted by name and type. */
  readonly records: (zone: string) => Promise<RecordSet[]>
  readonly put: (zone: string, set: RecordSet) => Promise<void>
  readonly remove: (zone: string, name: string, type: string) => Promise<void>
  /** Kills it; `start` brings it back on the same ports with all that it held. */
  readonly stop: () => Promise<void>
  readonly start: () => Promise<void>
}

interface ApiZone {
  readonly rrsets: readonly {
    readonly name: string
    readonly type: string
    readonly ttl: number
    readonly records: readonly { readonly content: string; readonly disabled: boolean }[]
  }[]
}

const startOnce = async (): Promise<PowerdnsServer> => {
  if (!program || lacksPowerdns) throw new Error(lacksPowerdns)
  const folder = await mkdtemp(join(tmpdir(), 'pool-powerdns-'))
  const [apiPort, dnsPort] = await Promise.all([freePort(), freePort()])
  const apiKey = randomBytes(16).toString('hex')
  await writePdnsFiles(folder, [
    'local-address=127.0.0.1',
    `local-port=${dnsPort}`,
    'api=yes',
    `api-key=${apiKey}`,
    'webserver=yes',
    'webserver-address=127.0.0.1',
    `webserver-port=${apiPort}`,
    'webserver-allow-from=127.0.0.1',
  ])
  const options = { url: `http://127.0.0.1:${apiPort}`, apiKey, serverId: 'localhost' }

  const ask = (method: string, path: string, body?: unknown) =>
    fetch(`${options.url}/api/v1/servers/localhost${path}`, {
      method,
      headers: { 'X-API-Key': apiKey },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  const call = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const response = await ask(method, path, body)
    const text = await response.text()
    if (!response.ok && response.status !== 404) throw new Error(`PowerDNS answered ${response.status}: ${text}`)
    return response.ok && text !== '' ? JSON.parse(text) : undefined
  }
  const isUp = () =>
    ask('GET', '').then(
      response => response.ok,
      () => false,
    )
  const patch = (zone: string, rrset: unknown) => call('PATCH', `/zones/${zone}.`, { rrsets: [rrset] })

  const command = [program, `--config-dir=${folder}`]
  const start = () => startServerAndWait({ name: 'PowerDNS', command, folder, isUp })
  let kill: (() => Promise<void>) | undefined = await start().catch(async error => {
    await rm(folder, { recursive: true, force: true })
    throw error
  })
  const stop = async () => {
    await kill?.()
    kill = undefined
  }

  return {
    options,
    dnsPort,
    call,
    async createZone(zone) {
      await call('POST', '/zones', { name: `${zone}.`, kind: 'Native', nameservers: [`ns1.${zone}.`] })
    },
    async records(zone) {
      const answer = (await call('GET', `/zones/${zone}.`)) as ApiZone
      return answer.rrsets
        .map(({ name, type, ttl, records }) => ({
          name: name.slice(0, -1),
          type,
          ttl,
          values: records.flatMap(({ content, disabled }) => (disabled ? [] : [content])).sort(),
        }))
        .filter(({ name, type, values }) => values.length > 0 && !(name === zone && (type === 'SOA' || type === 'NS')))
        .sort((a, b) => (recordKey(a) < recordKey(b) ? -1 : 1))
    },
    async put(zone, { name, type, ttl, values }) {
      const records = values.map(content => ({ content, disabled: false }))
      await patch(zone, { name: `${name}.`, type, ttl, changetype: 'REPLACE', records })
    },
    async remove(zone, name, type) {
      await patch(zone, { name: `${name}.`, type, changetype: 'DELETE' })
    },
    stop,
    async start() {
      kill ??= await start()
    },
    async [Symbol.asyncDispose]() {
      await stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** A PowerDNS of its own: ports, folder and key; SQLite; nothing cached, so that what is written is answered at once. */
export const startPowerdns = (): Promise<PowerdnsServer> =>
  // A port that was free a moment ago, for TCP, may be taken: once more with others.
  startOnce().catch(startOnce)

/** A zone of a PowerDNS of its own, as the conformance suite wants it. */
export const startPowerdnsSubject = async (): Promise<ProviderSubject & { readonly server: PowerdnsServer }> => {
  const server = await startPowerdns()
  const zone = `pool-${randomBytes(4).toString('hex')}.test`
  const wrongKey = randomBytes(16).toString('hex')
  try {
    await server.createZone(zone)
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
  const provider = createPowerdnsProvider(server.options)
  const withWrongKey = createPowerdnsProvider({ ...server.options, apiKey: wrongKey })
  return {
    server,
    provider,
    zone,
    records: () => server.records(zone),
    put: set => server.put(zone, set),
    remove: (name, type) => server.remove(zone, name, type),
    goAway: server.stop,
    comeBack: server.start,
    withWrongKey,
    secrets: [server.options.apiKey, wrongKey],
    async [Symbol.asyncDispose]() {
      await Promise.all([provider.close(), withWrongKey.close()])
      await server[Symbol.asyncDispose]()
    },
  }
}

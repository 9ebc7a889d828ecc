import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { freePort } from '@pool/dev/ports'
import { findProgram, startServerAndWait } from '@pool/dev/server-process'
import { until } from '../poll.ts'

/** The schema of PowerDNS's SQLite backend, as its package installs it. */
export const pdnsSchema = [
  '/usr/share/pdns-backend-sqlite3/schema',
  '/usr/share/doc/pdns-backend-sqlite3',
  '/usr/share/doc/pdns',
]
  .map(folder => join(folder, 'schema.sqlite3.sql'))
  .find(existsSync)

const toFile = (folder: string): string => join(folder, 'zones.sqlite3')

/** Inserts A records into the database of a server that may be running. */
const fillPdnsZone = (
  folder: string,
  zone: string,
  records: Iterable<readonly [name: string, address: string]>,
): void => {
  const database = new DatabaseSync(toFile(folder))
  database.exec('pragma busy_timeout = 5000; begin immediate')
  const insert = database.prepare(
    `insert into records (domain_id, name, type, content, ttl, prio, disabled, auth)
     select id, ?, 'A', ?, 300, 0, 0, 1 from domains where name = ?`,
  )
  for (const [name, address] of records) insert.run(name, address, zone)
  database.exec('commit')
  database.close()
}

/** An empty database and a configuration without caches, so that what was written is what is answered. */
export const writePdnsFiles = async (folder: string, settings: readonly string[]): Promise<void> => {
  const file = toFile(folder)
  const database = new DatabaseSync(file)
  database.exec(readFileSync(pdnsSchema ?? '', 'utf8'))
  database.close()
  const lines = [
    'launch=gsqlite3',
    `gsqlite3-database=${file}`,
    'gsqlite3-pragma-synchronous=0',
    `socket-dir=${folder}`,
    'zone-cache-refresh-interval=0',
    'cache-ttl=0',
    'query-cache-ttl=0',
    'negquery-cache-ttl=0',
    'zone-metadata-cache-ttl=0',
    'security-poll-suffix=',
    'loglevel=3',
    'daemon=no',
    'guardian=no',
    ...settings,
  ]
  await writeFile(join(folder, 'pdns.conf'), `${lines.join('\n')}\n`, { mode: 0o600 })
}

const program = findProgram('pdns_server')

/** One RRset as a test reads and writes it: names absolute without the trailing dot, values in presentation format. */
export interface ZoneRecordSet {
  readonly name: string
  readonly type: string
  /** Seconds. */
  readonly ttl: number
  readonly values: readonly string[]
}

/** A change of a zone that bypasses the service, in one step. */
export interface ZoneEdit {
  readonly remove: readonly { readonly name: string; readonly type: string }[]
  readonly put: readonly ZoneRecordSet[]
}

/** What is missing and how to install it; undefined: everything is installed. */
export const missingPowerdns =
  program !== undefined && pdnsSchema !== undefined
    ? undefined
    : 'PowerDNS is not installed, its tests are skipped: apt-get install pdns-server pdns-backend-sqlite3'
export const missingDig = findProgram('dig')
  ? undefined
  : 'dig is not installed, one test is skipped: apt-get install bind9-dnsutils'

export interface PowerdnsServer extends AsyncDisposable {
  /** The options of a provider for it. */
  readonly options: { readonly url: string; readonly apiKey: string; readonly serverId: string }
  /** The port of its DNS listener on 127.0.0.1, over UDP and TCP. */
  readonly dnsPort: number
  /** Calls its API under `/api/v1/servers/localhost`. Rejects for every status except 2xx and 404. */
  readonly call: (method: string, path: string, body?: unknown) => Promise<unknown>
  /** Creates a zone with SOA and NS. Rejects if it exists. */
  readonly createZone: (zone: string) => Promise<void>
  /** Every record set except SOA and NS of the apex, sorted by name and type. */
  readonly records: (zone: string) => Promise<ZoneRecordSet[]>
  readonly edit: (zone: string, edit: ZoneEdit) => Promise<void>
  readonly put: (zone: string, set: ZoneRecordSet) => Promise<void>
  readonly remove: (zone: string, name: string, type: string) => Promise<void>
  /** Adds A records to a zone, directly in its database, which is faster than `edit`. */
  readonly fill: (zone: string, records: Iterable<readonly [name: string, address: string]>) => void
  /** Kills it. `start` starts it again on the same ports with the same data. */
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

const startOnce = async (settings: readonly string[]): Promise<PowerdnsServer> => {
  if (!program || missingPowerdns) throw new Error(missingPowerdns)
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
    ...settings,
  ])
  const options = { url: `http://127.0.0.1:${apiPort}`, apiKey, serverId: 'localhost' }

  const request = (method: string, path: string, body?: unknown) =>
    fetch(`${options.url}/api/v1/servers/localhost${path}`, {
      method,
      headers: { 'X-API-Key': apiKey },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  const call = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const response = await request(method, path, body)
    const text = await response.text()
    if (!response.ok && response.status !== 404) throw new Error(`PowerDNS answered ${response.status}: ${text}`)
    return response.ok && text !== '' ? JSON.parse(text) : undefined
  }
  const isUp = () =>
    request('GET', '').then(
      response => response.ok,
      () => false,
    )

  const edit = async (zone: string, { remove, put }: ZoneEdit): Promise<void> => {
    const rrsets = [
      ...remove.map(({ name, type }) => ({ name: `${name}.`, type, changetype: 'DELETE' })),
      ...put.map(({ name, type, ttl, values }) => ({
        name: `${name}.`,
        type,
        ttl,
        changetype: 'REPLACE',
        records: values.map(content => ({ content, disabled: false })),
      })),
    ]
    // 500 during a write of another zone: SQLite has one writer.
    await until('PowerDNS accepts the edit', () =>
      call('PATCH', `/zones/${zone}.`, { rrsets }).then(
        () => true as const,
        (error: unknown) => !/ 500: /.test(String(error)) && Promise.reject(error),
      ),
    )
  }

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
        .sort((a, b) => (`${a.name} ${a.type}` < `${b.name} ${b.type}` ? -1 : 1))
    },
    edit,
    put: (zone, set) => edit(zone, { remove: [], put: [set] }),
    remove: (zone, name, type) => edit(zone, { remove: [{ name, type }], put: [] }),
    fill: (zone, records) => fillPdnsZone(folder, zone, records),
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

/** A PowerDNS with its own ports, folder and key, on SQLite, without caches: it serves a write immediately. */
export const startPowerdns = (settings: readonly string[] = []): Promise<PowerdnsServer> =>
  // A port that was free a moment ago may be in use now: retry with others.
  startOnce(settings).catch(() => startOnce(settings))

import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { createPowerdnsProvider, type PowerdnsOptions } from '../../../src/dns/powerdns.ts'
import { type RecordSet, recordKey } from '../../../src/dns/record-set.ts'
import { until } from '../../support/until.ts'
import type { ProviderSubject } from '../subject.ts'

const program = ['/usr/sbin/pdns_server', '/usr/local/sbin/pdns_server', '/usr/bin/pdns_server'].find(existsSync)
const schema = ['/usr/share/pdns-backend-sqlite3/schema', '/usr/share/doc/pdns-backend-sqlite3', '/usr/share/doc/pdns']
  .map(folder => join(folder, 'schema.sqlite3.sql'))
  .find(existsSync)

export const hasPowerdns = program !== undefined && schema !== undefined
export const lacksPowerdns =
  'PowerDNS is not installed, its tests are skipped: apt-get install pdns-server pdns-backend-sqlite3'

export const hasDig = spawnSync('dig', ['-v']).status === 0
export const lacksDig = 'dig is not installed, one test is skipped: apt-get install dnsutils'

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

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer().on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })

/**
 * Kills the server when standard input ends, which it also does when the tests die in whatever way. The shell gives up
 * its own output, so that the end of the output is the end of the server.
 */
const guard = '"$@" & server=$!; exec >&- 2>&-; read -r _; kill -KILL $server; wait $server'

/** Starts the server; returns what kills it. */
const run = async (config: string, isUp: () => Promise<boolean>): Promise<() => Promise<void>> => {
  const child = spawn('/bin/sh', ['-c', guard, 'sh', program ?? '', `--config-dir=${config}`], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let said = ''
  let isOver = false
  const exited = new Promise<void>(resolve => child.once('exit', () => resolve()))
  child.stdin.on('error', () => {})
  child.stdout.setEncoding('utf8').on('data', text => {
    said += text
  })
  child.stderr
    .setEncoding('utf8')
    .on('data', text => {
      said += text
    })
    .on('end', () => {
      isOver = true
    })
  const kill = async () => {
    child.stdin.end()
    await exited
  }
  try {
    await until('PowerDNS answers', async () => {
      if (isOver) throw new Error(`PowerDNS ended:\n${said}`)
      return isUp()
    })
  } catch (error) {
    await kill()
    throw error
  }
  return kill
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
  if (!program || !schema) throw new Error(lacksPowerdns)
  const folder = await mkdtemp(join(tmpdir(), 'pool-powerdns-'))
  const file = join(folder, 'zones.sqlite3')
  const database = new DatabaseSync(file)
  database.exec(readFileSync(schema, 'utf8'))
  database.close()
  const [apiPort, dnsPort] = await Promise.all([freePort(), freePort()])
  const apiKey = randomBytes(16).toString('hex')
  writeFileSync(
    join(folder, 'pdns.conf'),
    `launch=gsqlite3
gsqlite3-database=${file}
gsqlite3-pragma-synchronous=0
socket-dir=${folder}
local-address=127.0.0.1
local-port=${dnsPort}
api=yes
api-key=${apiKey}
webserver=yes
webserver-address=127.0.0.1
webserver-port=${apiPort}
webserver-allow-from=127.0.0.1
zone-cache-refresh-interval=0
cache-ttl=0
query-cache-ttl=0
negquery-cache-ttl=0
zone-metadata-cache-ttl=0
security-poll-suffix=
loglevel=3
daemon=no
guardian=no
`,
    { mode: 0o600 },
  )
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

  const start = () => run(folder, isUp)
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

import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { RecordSet } from '../../../src/dns/record-set.ts'
import { createRfc2136Provider, type Rfc2136Options } from '../../../src/dns/rfc2136.ts'
import { until } from '../../support/until.ts'
import type { ProviderSubject } from '../subject.ts'

const run = promisify(execFile)
const found = (name: string): string | undefined =>
  ['/usr/sbin', '/usr/bin', '/usr/local/sbin', '/usr/local/bin'].map(folder => join(folder, name)).find(existsSync)
const programs = { knotd: found('knotd'), knotc: found('knotc'), dig: found('dig') }

/** Null where they are not: then the tests of a real server are skipped. */
export const lacksKnot =
  programs.knotd && programs.knotc && programs.dig
    ? null
    : 'Knot DNS or dig is not installed, the tests of the rfc2136 provider are skipped: apt-get install knot bind9-dnsutils'

export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const server = createServer().on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })

const accepts = (port: number): Promise<boolean> =>
  new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.on('error', () => resolve(false))
  })

/** What a key may do: everything, read only, or update the names at and below `limited.<zone>` only. */
export type KeyName = 'full.key.test' | 'reader.key.test' | 'limited.key.test'

export interface Knot extends AsyncDisposable {
  readonly server: { readonly host: string; readonly port: number }
  readonly zone: string
  readonly secret: string
  readonly options: (key?: KeyName) => Rfc2136Options
  /** As dig prints them, without SOA and NS of the apex. */
  readonly records: () => Promise<RecordSet[]>
  readonly put: (set: RecordSet) => Promise<void>
  readonly remove: (name: string, type: string) => Promise<void>
  readonly stop: () => Promise<void>
  readonly start: () => Promise<void>
}

let zonesMade = 0

/** Knot DNS as the current user, with one zone that only its keys may read and change. */
export const startKnot = async (): Promise<Knot> => {
  const { knotd = '', knotc = '', dig = '' } = programs
  const folder = await mkdtemp(join(tmpdir(), 'pool-knot-'))
  const port = await freePort()
  zonesMade += 1
  const zone = `zone${zonesMade}.test`
  const secret = randomBytes(32).toString('base64')
  const keys: readonly KeyName[] = ['full.key.test', 'reader.key.test', 'limited.key.test']
  const settings = join(folder, 'knot.conf')
  await writeFile(
    settings,
    `server:
    rundir: ${folder}
    listen: 127.0.0.1@${port}
    tcp-workers: 1
    udp-workers: 1
    background-workers: 1
database:
    storage: ${folder}
    journal-db-max-size: 64M
log:
  - target: stderr
    any: warning
key:
${keys.map(id => `  - id: ${id}\n    algorithm: hmac-sha256\n    secret: ${secret}`).join('\n')}
acl:
  - id: full
    key: full.key.test
    action: [transfer, update]
  - id: reader
    key: [reader.key.test, limited.key.test]
    action: transfer
  - id: limited
    key: limited.key.test
    action: update
    update-owner: name
    update-owner-match: sub-or-equal
    update-owner-name: limited.${zone}.
zone:
  - domain: ${zone}
    storage: ${folder}
    file: zone
    acl: [full, reader, limited]
    zonefile-sync: 0
`,
    { mode: 0o600 },
  )
  await writeFile(
    join(folder, 'zone'),
    `${zone}. 3600 SOA ns.elsewhere.test. hostmaster.elsewhere.test. 1 3600 600 86400 300\n${zone}. 3600 NS ns.elsewhere.test.\n`,
  )

  let child: ChildProcess | undefined
  let isOver: Promise<unknown> = Promise.resolve()
  const start = async (): Promise<void> => {
    let said = ''
    const process = spawn(knotd, ['-c', settings], { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] })
    process.stderr.setEncoding('utf8').on('data', text => {
      said += text
    })
    child = process
    isOver = new Promise(resolve => process.on('close', resolve))
    await until('Knot serves the zone', async () => {
      if (process.exitCode !== null) throw new Error(`Knot ended:\n${said}`)
      if (!existsSync(join(folder, 'knot.sock')) || !(await accepts(port))) return false
      return control('zone-read', zone, '@', 'SOA').then(
        text => text.includes('SOA'),
        () => false,
      )
    })
  }
  const stop = async (): Promise<void> => {
    child?.kill('SIGTERM')
    await isOver
  }
  const control = async (...words: string[]): Promise<string> =>
    (await run(knotc, ['-s', join(folder, 'knot.sock'), ...words])).stdout
  const change = async (...commands: string[][]): Promise<void> => {
    await control('zone-begin', zone)
    try {
      for (const command of commands) await control(...command)
      await control('zone-commit', zone)
    } catch (error) {
      await control('zone-abort', zone).catch(() => {})
      throw error
    }
  }
  await start()

  return {
    server: { host: '127.0.0.1', port },
    zone,
    secret,
    options: (name = 'full.key.test') => ({
      server: { host: '127.0.0.1', port },
      tsig: { name, secret, algorithm: 'hmac-sha256' },
    }),
    async records() {
      const key = `hmac-sha256:full.key.test:${secret}`
      const asked = ['@127.0.0.1', '-p', String(port), '+tcp', '+noall', '+answer', '+onesoa', '-y', key, zone, 'AXFR']
      const { stdout } = await run(dig, asked, { maxBuffer: 2 ** 28 })
      const sets = new Map<string, { name: string; type: string; ttl: number; values: string[] }>()
      for (const line of stdout.split('\n')) {
        const [, owner = '', ttl = '', type = '', value = ''] = /^(\S+)\.\s+(\d+)\s+IN\s+(\S+)\s+(.+)$/.exec(line) ?? []
        if (type === '' || (owner === zone && (type === 'SOA' || type === 'NS'))) continue
        const set = sets.get(`${owner} ${type}`) ?? { name: owner, type, ttl: Number(ttl), values: [] }
        sets.set(`${owner} ${type}`, { ...set, values: [...set.values, value].sort() })
      }
      return [...sets.values()].sort((a, b) => (`${a.name} ${a.type}` < `${b.name} ${b.type}` ? -1 : 1))
    },
    put: async ({ name, type, ttl, values }) => {
      const isThere = (await control('zone-read', zone, `${name}.`, type).catch(() => '')) !== ''
      await change(
        ...(isThere ? [['zone-unset', zone, `${name}.`, type]] : []),
        ...values.map(value => ['zone-set', zone, `${name}.`, String(ttl), type, value]),
      )
    },
    remove: async (name, type) => {
      await change(['zone-unset', zone, `${name}.`, type])
    },
    stop,
    start,
    async [Symbol.asyncDispose]() {
      await stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export const startRfc2136Subject = async (): Promise<ProviderSubject> => {
  const knot = await startKnot()
  const options = knot.options()
  const wrongSecret = randomBytes(32).toString('base64')
  return {
    provider: createRfc2136Provider(options),
    zone: knot.zone,
    records: knot.records,
    put: knot.put,
    remove: knot.remove,
    goAway: knot.stop,
    comeBack: knot.start,
    withWrongKey: createRfc2136Provider({ ...options, tsig: { ...options.tsig, secret: wrongSecret } }),
    secrets: [knot.secret, wrongSecret],
    [Symbol.asyncDispose]: () => knot[Symbol.asyncDispose](),
  }
}

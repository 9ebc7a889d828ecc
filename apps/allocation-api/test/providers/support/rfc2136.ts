import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '@pool/dev/ports'
import { findProgram, startServerAndWait } from '@pool/dev/server-process'
import type { ZoneEdit } from '@pool/test-kit/dns/powerdns.ts'
import { pdnsSchema, writePdnsFiles } from '@pool/test-kit/dns/powerdns.ts'
import { type RecordSet, recordKey } from '../../../src/dns/domain/rrset.ts'
import type { Rfc2136Options } from '../../../src/dns/providers/rfc2136/index.ts'

/** Keys with full access, with read access, and with update access only at and below `limited.<zone>`. */
const keyNames = ['full.key.test', 'reader.key.test', 'limited.key.test', 'addresses.key.test'] as const
export type KeyName = (typeof keyNames)[number]

const hasIpv6 = Object.values(networkInterfaces()).some(all => all?.some(({ address }) => address === '::1'))

/** The addresses on which every server listens. */
export const addresses = hasIpv6 ? ['127.0.0.1', '::1'] : ['127.0.0.1']

/** The directory, port and zone of a server. */
interface Setup {
  /** Empty, for this server only. */
  readonly folder: string
  readonly port: number
  readonly zone: string
  /** The zone's SOA and NS records, in a file of the folder. */
  readonly zoneFile: string
  /** Further zones, which only Knot and BIND serve. The names of their files are their own, in the folder. */
  readonly moreZones: readonly string[]
  /** Of all keys, in base64. */
  readonly secret: string
}

/** One kind of server. */
export interface ServerKind {
  readonly name: string
  /** What is not installed, and how to install it; undefined: all programs are installed. */
  readonly missingPrograms: string | undefined
  /** Whether a key can be limited to some names of a zone. */
  readonly hasLimitedKeys: boolean
  /** Whether it sends TSIG errors (RFC 8945 section 5.2). */
  readonly hasTsigErrors: boolean
  /** Whether it accepts records of unknown types (RFC 3597). */
  readonly acceptsUnknownTypes: boolean
  /** The limit of record sets in a test, for a server with slow writes; undefined: no limit. */
  readonly maxRecordSets?: number
  /** Writes its settings, and returns the command that runs it in the foreground. */
  readonly prepare: (setup: Setup) => Promise<readonly [program: string, ...words: string[]]>
}

export interface Server extends AsyncDisposable {
  readonly port: number
  readonly zone: string
  readonly secret: string
  readonly options: (key?: KeyName) => Rfc2136Options
  /** As dig prints them, without SOA and NS of the apex; sorted by name and type. `ofZone`: default is `zone`. */
  readonly records: (ofZone?: string) => Promise<RecordSet[]>
  /** All of it in one message. */
  readonly edit: (ofZone: string, edit: ZoneEdit) => Promise<void>
  readonly put: (...sets: RecordSet[]) => Promise<void>
  readonly remove: (name: string, type: string) => Promise<void>
  readonly stop: () => Promise<void>
  readonly start: () => Promise<void>
  /** Starts it again with these zones instead of `moreZones`. */
  readonly serve: (...zones: string[]) => Promise<void>
}

/** `programs` belong to the server. The tests read and write with dig and nsupdate, independently of the provider. */
const findMissingPrograms = (name: string, programs: readonly string[], packages: string): string | undefined =>
  [...programs, 'dig', 'nsupdate'].every(findProgram)
    ? undefined
    : `${name}, dig or nsupdate is not installed, tests of rfc2136 are skipped: apt-get install ${packages} bind9-dnsutils`

const run = (program: string, words: readonly string[], input = ''): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = execFile(program, words, { maxBuffer: 2 ** 28 }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${program}: ${stderr || error.message}`))
      else resolve(stdout)
    })
    child.stdin?.on('error', () => {})
    child.stdin?.end(input)
  })

/**
 * Of an update that the server refuses. Such an update changes nothing (RFC 2136 section 3), so it can be repeated. BIND once
 * refused one that it accepted in every other run; the reason is not known.
 */
const MAX_ATTEMPTS = 3
const RETRY_PAUSE_MS = 100

let zoneCount = 0

const startOnce = async (
  kind: ServerKind,
  moreZones: readonly string[],
  records: readonly string[],
): Promise<Server> => {
  const folder = await mkdtemp(join(tmpdir(), `pool-${kind.name.toLowerCase()}-`))
  const port = await freePort()
  zoneCount += 1
  const zone = `zone${zoneCount}.test`
  const secret = randomBytes(32).toString('base64')
  for (const [i, other] of moreZones.entries())
    await writeFile(join(folder, other), zoneText(other) + (records[i] ?? ''))
  const command = await kind.prepare({ folder, port, zone, zoneFile: join(folder, 'zone'), moreZones, secret })
  const [dig, nsupdate] = [findProgram('dig') ?? '', findProgram('nsupdate') ?? '']
  const key = `hmac-sha256:full.key.test:${secret}`

  const transfer = (ofZone = zone): Promise<string> => {
    const how = ['+tcp', '+noall', '+answer', '+onesoa', '+tries=1', '+time=30', '-y', key]
    return run(dig, ['@127.0.0.1', '-p', String(port), ...how, ofZone, 'AXFR'])
  }
  const update = async (lines: readonly string[], ofZone = zone): Promise<void> => {
    const script = [`server 127.0.0.1 ${port}`, `zone ${ofZone}`, ...lines, 'send', ''].join('\n')
    for (let attempts = 1; ; attempts += 1) {
      try {
        await run(nsupdate, ['-v', '-t', '60', '-y', key], script)
        return
      } catch (error) {
        if (!/REFUSED/.test(String(error)) || attempts === MAX_ATTEMPTS) throw error
        await sleep(RETRY_PAUSE_MS)
      }
    }
  }

  const isUp = async () => (await transfer().catch(() => '')).includes('SOA')
  let kill: (() => Promise<void>) | undefined
  const stop = async (): Promise<void> => {
    await kill?.()
    kill = undefined
  }
  const start = async (): Promise<void> => {
    kill = await startServerAndWait({ name: kind.name, command, folder, isUp })
  }
  const server: Server = {
    port,
    zone,
    secret,
    options: (name = 'full.key.test') => ({
      server: { host: '127.0.0.1', port },
      tsig: { name, secret },
    }),
    async records(ofZone = zone) {
      const sets = new Map<string, RecordSet>()
      for (const line of (await transfer(ofZone)).split('\n')) {
        const [, owner = '', ttl = '', type = '', value = ''] = /^(\S+)\.\s+(\d+)\s+IN\s+(\S+)\s+(.+)$/.exec(line) ?? []
        if (type === '' || (owner === ofZone && (type === 'SOA' || type === 'NS'))) continue
        const before = sets.get(`${owner} ${type}`)?.values ?? []
        sets.set(`${owner} ${type}`, { name: owner, type, ttl: Number(ttl), values: [...before, value].sort() })
      }
      return [...sets.values()].sort((a, b) => (recordKey(a) < recordKey(b) ? -1 : 1))
    },
    async edit(ofZone, { remove, put }) {
      await update(
        [...remove, ...put]
          .map(({ name, type }) => `update delete ${name}. ${type}`)
          .concat(
            put.flatMap(({ name, type, ttl, values }) =>
              values.map(value => `update add ${name}. ${ttl} ${type} ${value}`),
            ),
          ),
        ofZone,
      )
    },
    put: (...sets) => server.edit(zone, { remove: [], put: sets }),
    async remove(name, type) {
      await update([`update delete ${name}. ${type}`])
    },
    stop,
    start,
    async serve(...zones) {
      await stop()
      for (const other of zones) await writeFile(join(folder, other), zoneText(other), { flag: 'wx' }).catch(() => {})
      await kind.prepare({ folder, port, zone, zoneFile: join(folder, 'zone'), moreZones: zones, secret })
      await start()
    },
    async [Symbol.asyncDispose]() {
      await stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
  try {
    await start()
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
  return server
}

/**
 * Starts a server as the current user, with one zone, and `moreZones`, that only its keys may read and change. `records`:
 * for each of `moreZones`, lines of its zone file.
 */
export const startServer = async (
  kind: ServerKind,
  moreZones: readonly string[] = [],
  records: readonly string[] = [],
): Promise<Server> => {
  if (kind.missingPrograms) throw new Error(kind.missingPrograms)
  // A port that was free a moment ago may be in use now: retry with another.
  return startOnce(kind, moreZones, records).catch(() => startOnce(kind, moreZones, records))
}

/** The zone file of a new zone. */
const zoneText = (zone: string): string =>
  `${zone}. 3600 IN SOA ns.elsewhere.example. hostmaster.elsewhere.example. 1 3600 600 86400 300\n${zone}. 3600 IN NS ns.elsewhere.example.\n`

export const bind: ServerKind = {
  name: 'BIND',
  missingPrograms: findMissingPrograms('BIND', ['named'], 'bind9'),
  hasLimitedKeys: true,
  hasTsigErrors: true,
  acceptsUnknownTypes: true,
  async prepare({ folder, port, zone, zoneFile, moreZones, secret }) {
    const settings = join(folder, 'named.conf')
    await writeFile(zoneFile, zoneText(zone))
    await writeFile(
      settings,
      `${keyNames.map(name => `key "${name}" { algorithm hmac-sha256; secret "${secret}"; };`).join('\n')}
controls { };
options {
  directory "${folder}";
  pid-file none;
  lock-file none;
  session-keyfile "${folder}/session.key";
  managed-keys-directory "${folder}";
  listen-on port ${port} { 127.0.0.1; };
  listen-on-v6 port ${port} { ${addresses.includes('::1') ? '::1' : 'none'}; };
  recursion no;
  notify no;
  dnssec-validation no;
  allow-transfer { ${keyNames.map(name => `key "${name}";`).join(' ')} };
};
zone "${zone}" {
  type primary;
  file "${zoneFile}";
  update-policy {
    grant full.key.test zonesub ANY;
    grant addresses.key.test zonesub A;
    grant limited.key.test subdomain limited.${zone}. ANY;
  };
};
${moreZones.map(other => `zone "${other}" { type primary; file "${other}"; allow-update { key "full.key.test"; }; };\n`).join('')}`,
      { mode: 0o600 },
    )
    return [findProgram('named') ?? '', '-g', '-n', '1', '-c', settings]
  },
}

export const knot: ServerKind = {
  name: 'Knot',
  missingPrograms: findMissingPrograms('Knot DNS', ['knotd'], 'knot'),
  hasLimitedKeys: true,
  hasTsigErrors: true,
  acceptsUnknownTypes: true,
  async prepare({ folder, port, zone, zoneFile, moreZones, secret }) {
    const settings = join(folder, 'knot.conf')
    await writeFile(zoneFile, zoneText(zone))
    await writeFile(
      settings,
      `server:
    rundir: ${folder}
    listen: [${addresses.map(address => `${address}@${port}`).join(', ')}]
    tcp-workers: 1
    udp-workers: 1
    background-workers: 1
database:
    storage: ${folder}
    journal-db-max-size: 256M
    journal-db-mode: asynchronous
log:
  - target: stderr
    any: warning
key:
${keyNames.map(id => `  - id: ${id}\n    algorithm: hmac-sha256\n    secret: ${secret}`).join('\n')}
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
    file: ${zoneFile}
    acl: [full, reader, limited]
    zonefile-sync: -1
${moreZones.map(other => `  - domain: ${other}\n    storage: ${folder}\n    file: ${other}\n    acl: [full, reader]\n    zonefile-sync: -1\n`).join('')}`,
      { mode: 0o600 },
    )
    return [findProgram('knotd') ?? '', '-c', settings]
  },
}

const programs = ['pdns_server', 'pdnsutil', ...(pdnsSchema ? [] : ['schema.sqlite3.sql'])]

export const powerdns: ServerKind = {
  name: 'PowerDNS',
  missingPrograms: findMissingPrograms('PowerDNS', programs, 'pdns-server pdns-backend-sqlite3'),
  // Only with a custom script (setting `lua-dnsupdate-policy-script`).
  hasLimitedKeys: false,
  hasTsigErrors: false,
  acceptsUnknownTypes: false,
  maxRecordSets: 200,
  async prepare({ folder, port, zone, zoneFile, secret }) {
    await writeFile(zoneFile, zoneText(zone))
    await writePdnsFiles(folder, [
      'gsqlite3-dnssec=yes',
      `local-address=${addresses.join(',')}`,
      `local-port=${port}`,
      'dnsupdate=yes',
      'allow-dnsupdate-from=127.0.0.0/8,::1',
      'allow-axfr-ips=',
    ])
    const util = (...words: string[]) => run(findProgram('pdnsutil') ?? '', [`--config-dir=${folder}`, ...words])
    await util('load-zone', zone, zoneFile)
    for (const name of keyNames) await util('import-tsig-key', name, 'hmac-sha256', secret)
    await util('set-meta', zone, 'TSIG-ALLOW-AXFR', ...keyNames)
    await util('set-meta', zone, 'TSIG-ALLOW-DNSUPDATE', 'full.key.test')
    await util('set-meta', zone, 'SOA-EDIT-DNSUPDATE', 'INCREASE')
    return [findProgram('pdns_server') ?? '', `--config-dir=${folder}`]
  },
}

/** A kind of server whose configuration is edited before it starts. */
export const withSettings = (kind: ServerKind, edit: (settings: string) => string): ServerKind => ({
  ...kind,
  async prepare(setup) {
    const command = await kind.prepare(setup)
    const file = command.find(word => word.endsWith('.conf')) ?? ''
    await writeFile(file, edit(await readFile(file, 'utf8')))
    return command
  },
})

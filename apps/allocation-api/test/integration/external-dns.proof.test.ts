import { execFile } from 'node:child_process'
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { freePort, isListening } from '@pool/dev/ports'
import { until } from '@pool/test-kit/poll.ts'
import { Program } from '@pool/test-kit/program.ts'
import { reportProof } from '@pool/test-kit/proof-size.ts'
import { startApi } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createZoneTable } from '../../src/dns/providers/local/provider.ts'
import { startTestService } from '../support/service.ts'
import { createTenants, recordsEnv } from '../support/tenant-records.ts'

// The real external-dns, which Go builds from its module, with a source that reads endpoints from a file.

const VERSION = 'v0.20.0'
const POOLCTL = fileURLToPath(new URL('../../../../packages/cli/src/main.ts', import.meta.url))
const TYPES = ['A', 'AAAA', 'CNAME', 'TXT', 'MX', 'SRV']

const service = await startTestService(recordsEnv)
const { createTenant, as, release } = createTenants(service)
const { api, database } = service
let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'external-dns-'))
  const go = (...args: readonly string[]) =>
    promisify(execFile)('go', args, { cwd: folder, env: { ...process.env, GOBIN: folder, GOFLAGS: '-mod=mod' } })
  await go('install', `sigs.k8s.io/external-dns@${VERSION}`)
  const source = fileURLToPath(new URL('../support/external-dns-source.go', import.meta.url))
  await cp(source, join(folder, 'main.go'))
  await go('mod', 'init', 'source')
  await go('get', `sigs.k8s.io/external-dns/endpoint@${VERSION}`)
  await go('build', '-o', 'source', '.')
}, 3_600_000)
afterAll(() => rm(folder, { recursive: true, force: true }))

interface Endpoint {
  readonly dnsName: string
  readonly recordType: string
  readonly targets: readonly string[]
  readonly recordTTL?: number
  readonly setIdentifier?: string
}

/** A cluster that wants endpoints. */
const createCluster = async (owner: string, token: string, options: readonly string[] = []) => {
  const file = join(folder, `${owner}.json`)
  const port = await freePort()
  const source = new Program({ command: join(folder, 'source'), args: [`127.0.0.1:${port}`, file] })
  await until('the source listens', () => isListening(port))
  const url = new URL(api.url)
  url.username = 'token'
  url.password = token
  url.pathname = '/api/v1/records/external-dns'
  const want = (endpoints: readonly Endpoint[]) => writeFile(file, JSON.stringify(endpoints))
  const start = (...more: readonly string[]) =>
    new Program({
      command: join(folder, 'external-dns'),
      args: [
        ...['--source=connector', `--connector-source-server=127.0.0.1:${port}`, '--provider=webhook'],
        ...[`--txt-owner-id=${owner}`, '--policy=sync', '--metrics-address=127.0.0.1:0', '--log-level=debug'],
        ...TYPES.map(type => `--managed-record-types=${type}`),
        ...options,
        ...more,
      ],
    })
  /** The requests that changed something. */
  const cycle = async (endpoints: readonly Endpoint[]): Promise<string> => {
    await want(endpoints)
    return start('--once', `--webhook-provider-url=${url.href}`).untilSucceeded()
  }
  return { want, start, cycle, [Symbol.asyncDispose]: () => source[Symbol.asyncDispose]() }
}

const UP_TO_DATE = 'All records are already up to date'
const zone = createZoneTable(database.sql)
const readZone = async () =>
  (await zone.readPage('pool.test', null, 1_000)).records.map(({ name, type }) => `${name} ${type}`)
const template = (name: string) => ['', '*.', 'api.', 'console.'].map(label => `${label}${name}.pool.test A`).sort()
const ofName = async (name: string) => (await readZone()).filter(set => set.includes(`${name}.pool.test`)).sort()

const endpoints = (fqdn: string): readonly Endpoint[] => [
  { dnsName: `Shop.${fqdn}.`, recordType: 'A', targets: ['192.0.2.2', '192.0.2.1'], recordTTL: 5, setIdentifier: 'x' },
  { dnsName: `shop.${fqdn}`, recordType: 'AAAA', targets: ['2001:DB8::1'] },
  { dnsName: `*.apps.${fqdn}`, recordType: 'A', targets: ['192.0.2.3'] },
  { dnsName: `www.${fqdn}`, recordType: 'CNAME', targets: [`shop.${fqdn}.`] },
  { dnsName: fqdn, recordType: 'MX', targets: ['10 mail.example.'] },
  { dnsName: fqdn, recordType: 'TXT', targets: ['"v=spf1 -all"'] },
  { dnsName: `_sip._tcp.${fqdn}`, recordType: 'SRV', targets: [`10 5 5060 sip.${fqdn}.`] },
]

test.each([
  // Its registry does not know again which records of these types it owns, and leaves them.
  ['txt', ['acme.pool.test TXT', '*._tcp.acme.pool.test A', '_sip._tcp.acme.pool.test SRV', '_tcp.acme.pool.test A']],
  ['noop', []],
])('it converges in one cycle, changes types, and removes everything, registry %s', async (registry, left) => {
  const { reservationToken, token } = await createTenant('acme')
  const others = async () => (await readZone()).filter(set => !set.includes('acme.pool.test'))
  const before = await others()
  await using cluster = await createCluster(`c-${registry}`, token, [`--registry=${registry}`])
  const wanted = endpoints('acme.pool.test')
  expect(await cluster.cycle(wanted)).not.toContain(UP_TO_DATE)
  const sets = wanted.map(({ dnsName, recordType }) => `${dnsName.toLowerCase().replace(/\.$/, '')} ${recordType}`)
  // Without these, a name above a record would no longer have the addresses of the wildcard.
  const copies = ['*._tcp', '_tcp', 'apps'].map(label => `${label}.acme.pool.test A`)
  await expect.poll(() => ofName('acme')).toEqual([...template('acme'), ...sets, ...copies].sort())
  expect(await others()).toEqual(before)
  expect(await cluster.cycle(wanted)).toContain(UP_TO_DATE)
  const changed = wanted.map(one =>
    one.recordType === 'CNAME' ? { ...one, recordType: 'A', targets: ['192.0.2.9'] } : one,
  )
  await cluster.cycle(changed)
  expect(await cluster.cycle(changed)).toContain(UP_TO_DATE)
  await expect.poll(() => ofName('acme')).toContain('www.acme.pool.test A')
  await cluster.cycle([])
  await expect.poll(() => ofName('acme')).toEqual([...template('acme'), ...left].sort())
  await release('acme', reservationToken)
  reportProof(`${wanted.length} endpoints of external-dns ${VERSION}: 1 cycle`)
})

test.each([
  ['txt', [] as const],
  ['noop', ['--registry=noop'] as const],
])('two clusters with owners of their own keep their own, registry %s', async (registry, options) => {
  const { token, mintAs } = await createTenant(`two-${registry}`)
  await using first = await createCluster(`a-${registry}`, token, options)
  await using second = await createCluster(`b-${registry}`, await mintAs({ owner: 'second' }), options)
  const one = (name: string) => [
    { dnsName: `${name}.two-${registry}.pool.test`, recordType: 'A', targets: ['192.0.2.1'] },
  ]
  await first.cycle(one('one'))
  await second.cycle(one('two'))
  for (const output of [await first.cycle(one('one')), await second.cycle(one('two'))])
    expect(output).toContain(UP_TO_DATE)
  await second.cycle([])
  const left = await as(token)('GET', '')
  expect(left.body.records.map(({ name }: { name: string }) => name)).toEqual([`one.two-${registry}.pool.test`])
})

test('what the service does not permit is left out of its plan: it neither exits nor tries again', async () => {
  const { token } = await createTenant('template')
  await using cluster = await createCluster('c-template', token)
  const names = ['console.template.pool.test', 'template.pool.test', 'shop.other.pool.test']
  const wanted = names.map(dnsName => ({ dnsName, recordType: 'A', targets: ['192.0.2.1'] }))
  expect(await cluster.cycle(wanted)).toContain(UP_TO_DATE)
  expect(await ofName('template')).toEqual(template('template'))
})

test('behind the webhook of poolctl it survives a restart of the service', async () => {
  const port = await freePort()
  const settings = { ...recordsEnv, PORT: String(await freePort()) }
  const { token } = await createTenant('sidecar')
  const tokenFile = join(folder, 'sidecar.token')
  await writeFile(tokenFile, token, { mode: 0o600 })
  await using first = await startApi(database.url, settings)
  await using sidecar = new Program({
    command: process.execPath,
    args: [POOLCTL, 'records', 'webhook', '--api', first.url, '--token-file', tokenFile, '--port', String(port)],
  })
  await until('the sidecar listens', () => isListening(port))
  await using cluster = await createCluster('c-sidecar', token)
  await cluster.want([{ dnsName: 'a.sidecar.pool.test', recordType: 'A', targets: ['192.0.2.1'] }])
  await using client = cluster.start('--interval=1s', `--webhook-provider-url=http://localhost:${port}`)
  const untilUpToDate = (from: number) =>
    until('a cycle without changes', () => client.lines.slice(from).some(line => line.includes(UP_TO_DATE)))
  await untilUpToDate(0)
  await first.process.stop()
  await until('a cycle fails', () => sidecar.output.includes('no response'))
  await using second = await startApi(database.url, settings)
  expect(second.url).toBe(first.url)
  await cluster.want([{ dnsName: 'b.sidecar.pool.test', recordType: 'A', targets: ['192.0.2.1'] }])
  await untilUpToDate(client.lines.length)
  await expect.poll(() => ofName('sidecar'), { timeout: 60_000 }).toContain('b.sidecar.pool.test A')
  expect(client.hasExited, client.output).toBe(false)
  expect(client.output + sidecar.output).not.toContain(token)
})

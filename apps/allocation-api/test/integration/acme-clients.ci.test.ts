import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { freePort, isListening } from '@pool/dev/ports'
import { findProgram, startServerAndWait } from '@pool/dev/server-process'
import { createCa } from '@pool/test-kit/ceph/test-ca.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { until } from '@pool/test-kit/poll.ts'
import { Program } from '@pool/test-kit/program.ts'
import { isProof } from '@pool/test-kit/proof-size.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService } from '../support/service.ts'
import { challenge, createTenants } from '../support/tenant-records.ts'

// ACME clients as Debian has them, an authority that validates by DNS, and the DNS of the provider `local`.

const programs = ['lego', 'pebble', 'certbot']
const missing = programs.filter(name => findProgram(name) === undefined)
const isSkipped = shouldSkip(
  missing.length === 0
    ? undefined
    : `${missing.join(', ')} is not installed, the tests of ACME clients are skipped: apt-get install ${programs.join(' ')}`,
)
const page = readFileSync(new URL('../../../../docs/clients/records.md', import.meta.url), 'utf8')
const service = await startTestService({ PDM_RECORDS: 'acme' })
const { createTenant, mint, resolve } = createTenants(service)
const endpoint = `${service.api.url}/api/v1/records/httpreq`
let folder = ''
let directory = ''
let stopPebble = async () => {}

beforeAll(async () => {
  if (isSkipped) return
  folder = await mkdtemp(join(tmpdir(), 'acme-clients-'))
  const ca = await createCa()
  const { key, cert } = await ca.issue({ names: ['localhost'], addresses: ['127.0.0.1'] })
  const [port, managementPort] = [await freePort(), await freePort()]
  const pebble = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${managementPort}`,
    certificate: join(folder, 'cert.pem'),
    privateKey: join(folder, 'key.pem'),
    httpPort: 9,
    tlsPort: 9,
  }
  const files = { 'cert.pem': cert, 'key.pem': key, 'ca.pem': ca.cert, 'pebble.json': JSON.stringify({ pebble }) }
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 })
  directory = `https://127.0.0.1:${port}/dir`
  stopPebble = await startServerAndWait({
    name: 'pebble',
    folder,
    env: { ...process.env, PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '0' },
    command: [
      findProgram('pebble') ?? '',
      '-config',
      join(folder, 'pebble.json'),
      '-dnsserver',
      `127.0.0.1:${service.api.dnsPort}`,
    ],
    isUp: () => isListening(port),
  })
})
afterAll(async () => {
  await stopPebble()
  if (folder) await rm(folder, { recursive: true, force: true })
})

const names = (file: string): readonly string[] =>
  new X509Certificate(readFileSync(file)).subjectAltName
    ?.split(', ')
    .map(name => name.replace('DNS:', ''))
    .sort() ?? []

const lego = (subdomain: string, token: string, path: string, env: object = {}, provider = 'httpreq') =>
  new Program({
    command: findProgram('lego') ?? '',
    args: [
      ...['--server', directory, '--email', 'ops@acme.example', '--accept-tos', '--path', path],
      ...['--dns', provider, '--dns.resolvers', `127.0.0.1:${service.api.dnsPort}`, '--dns.disable-cp'],
      ...[`${subdomain}.pool.test`, `*.${subdomain}.pool.test`].flatMap(name => ['--domains', name]),
      'run',
    ],
    env: {
      LEGO_CA_CERTIFICATES: join(folder, 'ca.pem'),
      HTTPREQ_ENDPOINT: endpoint,
      HTTPREQ_USERNAME: 'token',
      HTTPREQ_PASSWORD: token,
      HTTPREQ_POLLING_INTERVAL: '1',
      ...env,
    },
  })

// lego waits five seconds for each challenge and each certificate, whatever the authority says.
describe.skipIf(isSkipped).concurrent('lego', () => {
  test.each([
    ['its default mode', 'default', {}],
    ['mode RAW', 'raw', { HTTPREQ_MODE: 'RAW' }],
  ])('in %s issues the name and its wildcard, twice, and leaves no value', async (_, subdomain, env) => {
    const { token } = await createTenant(subdomain, { scope: 'acme' })
    for (const run of ['first', 'second']) {
      const path = join(folder, `${subdomain}-${run}`)
      await lego(subdomain, token, path, env).untilSucceeded()
      const file = join(path, 'certificates', `${subdomain}.pool.test.crt`)
      expect(names(file)).toEqual([`*.${subdomain}.pool.test`, `${subdomain}.pool.test`])
      const isGone = async () => (await resolve(`_acme-challenge.${subdomain}.pool.test`, 'TXT')).length === 0
      await until('no value is left', isGone)
    }
  })

  test('two at once with one token both issue', async () => {
    const { token } = await createTenant('pair', { scope: 'acme' })
    const paths = ['one', 'two'].map(name => join(folder, `pair-${name}`))
    await Promise.all(paths.map(path => lego('pair', token, path).untilSucceeded()))
    for (const path of paths) expect(names(join(path, 'certificates', 'pair.pool.test.crt'))).toHaveLength(2)
  })

  test('with a token of a name that was released prints what to do, and fails', async () => {
    const { token } = await createTenant('gone', { scope: 'acme' })
    await service.call('DELETE', '/api/v1/pool/pool.test/release', { subdomain: 'gone' })
    const client = lego('gone', token, join(folder, 'gone'))
    expect(await client.exited).toBe(1)
    expect(client.output).toContain('its name was released')
    expect(client.output).not.toContain(token)
  })
})

/** Runs a block of the page for another name, with `options` of this authority. Returns its output and the certificate. */
const runBlock = async (tool: string, options: string, env: NodeJS.ProcessEnv, certificate: string) => {
  const { token } = await createTenant(tool, { scope: 'acme' })
  const cwd = join(folder, tool)
  await mkdir(cwd)
  await writeFile(join(cwd, 'acme.token'), token)
  const blocks = page.matchAll(/```sh needs=installation\n([^`]*)```/g)
  const start = new RegExp(`^${tool} `, 'm')
  const command = Array.from(blocks, ([, text = '']) => text)
    .filter(text => start.test(text))
    .join('\n')
    .replaceAll('acme.pool.example', `${tool}.pool.test`)
    .replace('https://records.pool.example', service.api.url)
    .replace(start, `${tool} ${options} `)
  const client = new Program({
    command: '/bin/bash',
    args: ['-euc', command],
    cwd,
    env: { HTTPREQ_PASSWORD: token, ...env },
  })
  const output = await client.untilSucceeded()
  await expect.poll(() => resolve(`_acme-challenge.${tool}.pool.test`, 'TXT')).toEqual([])
  return { output, certificate: join(cwd, certificate) }
}

/** What the page shows of a command: `…` stands for what differs from run to run. */
const expectTranscript = (command: string, tool: string, output: string, certificate: string): void => {
  const transcript = page.split(`\n$ ${command} `)[1]?.split(/\n(?=[$`])/)[0] ?? ''
  const openssl = ['x509', '-noout', '-issuer', '-ext', 'subjectAltName', '-in', certificate]
  const shown = `${output}\n${execFileSync('openssl', openssl)}`
  const [, ...lines] = transcript.replaceAll('acme.pool.example', `${tool}.pool.test`).split('\n')
  const parts = lines.flatMap(line => line.split('…'))
  expect(parts).toContain(`    DNS:${tool}.pool.test, DNS:*.${tool}.pool.test`)
  expect(
    parts.filter(part => !shown.includes(part.trim())),
    shown,
  ).toEqual([])
  expect(names(certificate)).toEqual([`*.${tool}.pool.test`, `${tool}.pool.test`])
}

describe.skipIf(isSkipped)('the commands of the page issue the name and its wildcard, as it shows', () => {
  test('lego', async () => {
    const options = `--server ${directory} --dns.resolvers 127.0.0.1:${service.api.dnsPort} --dns.disable-cp`
    const env = { LEGO_CA_CERTIFICATES: join(folder, 'ca.pem'), HTTPREQ_POLLING_INTERVAL: '1' }
    const { output, certificate } = await runBlock('lego', options, env, '.lego/certificates/lego.pool.test.crt')
    expectTranscript('lego', 'lego', output, certificate)
  })

  test('certbot', async () => {
    const options = `--server ${directory} --config-dir . --work-dir work --logs-dir logs -n --agree-tos -m ops@acme.example`
    const env = { REQUESTS_CA_BUNDLE: join(folder, 'ca.pem'), HTTPREQ_ENDPOINT: endpoint }
    const { output, certificate } = await runBlock('certbot', options, env, 'live/certbot.pool.test/cert.pem')
    expectTranscript('certbot', 'certbot', output, certificate)
  })
})

const missingGo =
  spawnSync('go', ['version']).status === 0
    ? undefined
    : 'Go is not installed, the test of the solver of cert-manager is skipped: https://go.dev/doc/install'

// Without a cache, Go compiles for minutes.
describe.skipIf(!isProof || shouldSkip(missingGo))(
  'the solver acmeDNS of cert-manager, built from its module',
  async () => {
    const built = await mkdtemp(join(tmpdir(), 'cert-manager-'))
    afterAll(() => rm(built, { recursive: true, force: true }))
    const solve = (host: string, accounts: object, domain: string, value: string) => {
      const file = join(built, `${domain}.json`)
      return writeFile(file, JSON.stringify(accounts)).then(
        () => new Program({ command: join(built, 'solver'), args: [host, file, domain, value] }),
      )
    }

    beforeAll(async () => {
      const source = fileURLToPath(new URL('../support/cert-manager-solver.go', import.meta.url))
      await cp(source, join(built, 'main.go'))
      const env = { ...process.env, GOFLAGS: '-mod=mod' }
      for (const command of [
        ['mod', 'init', 'solver'],
        ['get', 'github.com/cert-manager/cert-manager/pkg/issuer/acme/dns/acmedns@v1.21.2'],
        ['build', '-o', 'solver', '.'],
      ])
        await promisify(execFile)('go', command, { cwd: built, env })
    }, 1_200_000)

    test.skipIf(isSkipped)('issues the name and its wildcard, with lego for the order', async () => {
      const { reservationToken } = await createTenant('issued', { scope: 'acme' })
      const { body } = await mint('issued', { reservationToken, scope: 'acme' })
      const [accounts, script, path] = ['accounts.json', 'present.sh', 'lego'].map(file => join(built, file)) as [
        string,
        string,
        string,
      ]
      await writeFile(accounts, JSON.stringify(body.acmeDnsAccounts))
      const call = `[ "$1" != present ] || exec ${built}/solver ${service.api.url}/api/v1/records/acme-dns ${accounts} issued.pool.test "$3"`
      await writeFile(script, `#!/bin/sh\n${call}\n`, { mode: 0o755 })
      const env = { EXEC_PATH: script, EXEC_POLLING_INTERVAL: '1', EXEC_SEQUENCE_INTERVAL: '1' }
      const output = await lego('issued', '', path, env, 'exec').untilSucceeded()
      expectTranscript('cert-manager', 'issued', output, join(path, 'certificates', 'issued.pool.test.crt'))
    })

    test('presents the challenges of the name and of one below it, with the accounts of a token', async () => {
      const { reservationToken, send } = await createTenant('solver', { scope: 'acme' })
      const { body } = await mint('solver', { reservationToken, scope: 'acme' })
      const account = body.acmeDnsAccounts['solver.pool.test']
      const below = { ...account, subdomain: '_acme-challenge.shop.solver.pool.test' }
      const accounts = { ...body.acmeDnsAccounts, 'shop.solver.pool.test': below }
      const host = `${service.api.url}/api/v1/records/acme-dns`
      for (const [domain, letters] of [
        ['solver.pool.test', 'ab'],
        ['shop.solver.pool.test', 'c'],
      ] as const) {
        for (const letter of letters) await (await solve(host, accounts, domain, challenge(letter))).untilSucceeded()
        expect(await resolve(`_acme-challenge.${domain}`, 'TXT')).toEqual([...letters].map(challenge))
      }
      const unknown = await solve(
        host,
        { 'solver.pool.test': { ...account, password: 'x' } },
        'solver.pool.test',
        challenge('d'),
      )
      expect(await unknown.exited).toBe(1)
      expect((await send('GET', '')).status).toBe(200)
    })
  },
)

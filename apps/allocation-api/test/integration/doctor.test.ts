import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server as HttpServer } from 'node:http'
import { createServer as createTcpServer, type Server as TcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort, listenOnLoopback } from '@pool/dev/ports'
import { createDatabaseClient } from '@pool/runtime/database/client'
import { type DedicatedPostgres, startDedicatedPostgres } from '@pool/test-kit/dedicated-postgres.ts'
import { startCloudflareDouble } from '@pool/test-kit/dns/cloudflare-double.ts'
import { startDynadotDouble } from '@pool/test-kit/dns/dynadot-double.ts'
import { until } from '@pool/test-kit/poll.ts'
import { sendRequest, startApi } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  createRoleDatabase,
  type DoctorRun,
  type Env,
  expectOneProblem,
  findProblems,
  type RoleDatabaseOptions,
  run,
  SECRET,
} from '../support/doctor.ts'

const POOL = 'pool.test'
const LOCAL_DEPLOYMENT = fileURLToPath(new URL('../../../../infra/local-deployment', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'doctor-'))
const toPath = (name: string): string => join(folder, name)
const servers: (HttpServer | TcpServer)[] = []
let postgres: DedicatedPostgres
let goodUrl: string
let cloudflare: Awaited<ReturnType<typeof startCloudflareDouble>>
let dynadot: Awaited<ReturnType<typeof startDynadotDouble>>
let closedPort: number
let hangingPort: number

const listen = (server: HttpServer | TcpServer): Promise<number> => {
  servers.push(server)
  return listenOnLoopback(server)
}

const toPowerdnsEnv = (port: number) => ({
  DNSPROVIDER_KIND: 'powerdns',
  DNSPROVIDER_POWERDNS_URL: `http://127.0.0.1:${port}`,
  DNSPROVIDER_POWERDNS_API_KEY: SECRET,
})

/** A PowerDNS API that answers as this table of paths says; every other path is 404. */
const startPowerdns = async (
  answers: Readonly<Record<string, readonly [status: number, body: object | string]>>,
): Promise<Record<string, string>> => {
  const server = createServer((request, response) => {
    const path = `${request.method} ${request.url?.split('?')[0]}`
    const [status, body] = answers[path] ?? [404, 'Not Found']
    response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body))
  })
  return toPowerdnsEnv(await listen(server))
}
const API = '/api/v1/servers/localhost'
const ZONE = `${API}/zones/${POOL}.`
const native = { name: `${POOL}.`, kind: 'Native' }

const toScript = (name: string, content: string): string => {
  writeFileSync(toPath(name), `#!/bin/sh\n${content}\n`)
  chmodSync(toPath(name), 0o755)
  return toPath(name)
}

const createDatabase = (name: string, options: RoleDatabaseOptions = {}): Promise<string> =>
  createRoleDatabase(postgres.url, name, { copyOf: 'copied', ...options })

/** A database that the server admits no client to, as if `pg_hba.conf` had a line for each other database. */
const createUnlistedDatabase = async (): Promise<string> => {
  const url = await createDatabase('unlisted')
  const sql = postgres.connect()
  const [row] = await sql<{ file: string }[]>`select current_setting('hba_file') as file`
  const file = row?.file ?? ''
  writeFileSync(file, `host unlisted all all reject\n${readFileSync(file, 'utf8')}`)
  await sql`select pg_reload_conf()`
  await until('the server has read the file', async () => {
    const client = createDatabaseClient(url, { maxConnections: 1, applicationName: 'tests' })
    const code = await client`select 1`.then(
      () => null,
      error => error.code,
    )
    await client.end({ timeout: 0 })
    return code === '28000'
  })
  return url
}

beforeAll(async () => {
  postgres = await startDedicatedPostgres()
  await createRoleDatabase(postgres.url, 'copied')
  goodUrl = await createDatabase('good')
  cloudflare = await startCloudflareDouble({ token: SECRET })
  dynadot = await startDynadotDouble({ domains: [POOL], apiKey: SECRET })
  closedPort = await freePort()
  // It accepts connections and answers nothing.
  hangingPort = await listen(createTcpServer(socket => socket.on('error', () => {})))
  writeFileSync(toPath('empty'), '')
  writeFileSync(toPath('plain'), 'not a program')
  mkdirSync(toPath('no-module'))
})
afterAll(async () => {
  for (const server of servers) {
    if ('closeAllConnections' in server) server.closeAllConnections()
    server.close()
  }
  await Promise.all([cloudflare?.[Symbol.asyncDispose](), dynadot?.[Symbol.asyncDispose]()])
  await postgres?.remove()
  rmSync(folder, { recursive: true, force: true })
})

type Broken = readonly [
  what: string,
  /** What differs from a good setup. */
  env: () => Env | Promise<Env>,
  /** The fix that the line names. */
  fix: RegExp,
  options?: Omit<DoctorRun, 'args'> & {
    /** Default: 1. */
    readonly code?: number
  },
]

const base = (): Env => ({ PDM_DATABASE_URL: goodUrl, PATH: '' })
const withUrl = (parts: Partial<Pick<URL, 'port' | 'username' | 'password' | 'pathname'>>): Env => ({
  PDM_DATABASE_URL: Object.assign(new URL(goodUrl), parts).href,
})
const cloudflareEnv = (more: Env = {}): Env => ({
  DNSPROVIDER_KIND: 'cloudflare',
  PDM_TEST_SETTINGS: JSON.stringify({ providerUrl: cloudflare.url }),
  DNSPROVIDER_CLOUDFLARE_API_TOKEN: SECRET,
  ...more,
})

/** By the check of the one bad line. */
const broken: Readonly<Record<string, readonly Broken[]>> = {
  configuration: [
    ['an invalid value', () => ({ PORT: 'http' }), /PORT/, { code: 2 }],
    ['no database URL', () => ({ PDM_DATABASE_URL: '' }), /PDM_DATABASE_URL/, { code: 2 }],
    [
      'a database URL that is not a URL',
      () => ({ PDM_DATABASE_URL: `postgres://u:${SECRET}%zz@h/d` }),
      /percent-encoded/,
      { code: 2 },
    ],
    [
      'a secret file that does not exist',
      () => ({ PDM_DATABASE_URL: '', PDM_DATABASE_URL_FILE: '/no/such/file' }),
      /PDM_DATABASE_URL_FILE.*correct the path/,
      { code: 2 },
    ],
    [
      'a secret in the environment and in a file',
      () => ({ PDM_DATABASE_URL_FILE: toPath('plain') }),
      /unset one of them/,
      { code: 2 },
    ],
    [
      'the built-in DNS server for public names',
      () => ({ DNSPROVIDER_MANAGED_DOMAINS: 'pool.cloud' }),
      /choose the provider/,
      { code: 2 },
    ],
    [
      'a provider without its key',
      () => ({ DNSPROVIDER_KIND: 'cloudflare' }),
      /DNSPROVIDER_CLOUDFLARE_API_TOKEN/,
      { code: 2 },
    ],
    [
      'a trusted proxy that is not a network',
      () => ({ PDM_TRUSTED_PROXIES: 'proxy.internal' }),
      /10\.0\.0\.0\/8/,
      { code: 2 },
    ],
    ['a misspelt variable', () => ({ DNSPROVIDER_MANGED_DOMAINS: SECRET }), /DNSPROVIDER_MANAGED_DOMAINS\?/],
    ['a misspelt prefix', () => ({ PMD_DRAIN_DELAY: '5s' }), /PDM_DRAIN_DELAY\?/],
    [
      'proxies that are everywhere',
      () => ({ PDM_TRUSTED_PROXIES: '0.0.0.0/0' }),
      /list the networks of your proxies only/,
    ],
    ['a short operator token', () => ({ PDM_OPERATOR_TOKENS: `${SECRET}-0123456789` }), /openssl rand/],
  ],
  database: [
    ['no server', () => withUrl({ port: String(closedPort) }), /start the server/],
    [
      'a server that does not answer',
      () => withUrl({ port: String(hangingPort) }),
      /start the server/,
      { limits: { statementMs: 300, callMs: 8_000 } },
    ],
    ['a wrong password', () => withUrl({ password: `${SECRET}-other` }), /correct them in PDM_DATABASE_URL/],
    [
      'a database that no entry of pg_hba.conf names',
      async () => ({ PDM_DATABASE_URL: await createUnlistedDatabase() }),
      /not admit the user to the database from this address.*name of the database in PDM_DATABASE_URL.*pg_hba\.conf/,
    ],
    ['a database that does not exist', () => withUrl({ pathname: '/none' }), /create it/],
    ['a server without TLS', () => ({ PDM_DATABASE_URL: `${goodUrl}?sslmode=require` }), /sslmode/],
    [
      'an authority file that does not exist',
      () => ({ PDM_DATABASE_URL: `${goodUrl}?sslmode=verify-full&sslrootcert=/no/such/file` }),
      /sslrootcert/,
    ],
  ],
  'database role': [['a superuser', () => ({ PDM_DATABASE_URL: `${postgres.url}` }), /create role/]],
  'database schema': [
    [
      'a role that may not create tables',
      async () => ({
        PDM_DATABASE_URL: await createDatabase('no_create', {
          migrates: false,
          sql: 'alter database no_create owner to postgres; revoke create on schema public from public',
        }),
      }),
      /grant usage, create/,
    ],
    [
      'a schema of a newer build',
      async () => ({
        PDM_DATABASE_URL: await createDatabase('newer', {
          sql: `insert into allocation_api_migrations (version, name, oldest_build) values (999, 'later', 999)`,
        }),
      }),
      /run a newer build/,
    ],
  ],
  'database privileges': [
    [
      'a role without rights on the tables',
      async () => {
        await createDatabase('owner_of_tables')
        await createDatabase('no_rights', { migrates: false })
        return withUrl({ username: 'no_rights', pathname: '/owner_of_tables' })
      },
      /grant select, insert, update, delete/,
    ],
    [
      'a role that may only read',
      async () => {
        await createDatabase('reader', { migrates: false })
        await createDatabase('for_reader', { sql: 'grant select on all tables in schema public to reader' })
        return withUrl({ username: 'reader', pathname: '/for_reader' })
      },
      /grant select, insert, update, delete/,
    ],
  ],
  'database sequences': [
    [
      'a sequence behind its table, as after logical replication',
      async () => ({
        PDM_DATABASE_URL: await createDatabase('behind', {
          sql: `insert into dns_names (zone, subdomain, version, desired, changed_at, next_attempt_at)
            values ('pool.test', 'a', 7, '[]', now(), now())`,
        }),
      }),
      /setval\('dns_version', \(select max\(version\) from dns_names\)\)/,
    ],
  ],
  'database writes': [
    // It has no other bad line, so the doctor needs no write.
    [
      'a read-only database',
      async () => ({
        PDM_DATABASE_URL: await createDatabase('read_only', {
          sql: 'alter database read_only set default_transaction_read_only = on',
        }),
      }),
      /default_transaction_read_only = off/,
    ],
  ],
  'database replication': [
    [
      'commits that do not reach the disk',
      async () => ({
        PDM_DATABASE_URL: await createDatabase('volatile', { sql: 'alter role volatile set synchronous_commit = off' }),
      }),
      /synchronous_commit to on/,
    ],
  ],
  'database connections': [
    [
      'a role with few connections',
      async () => ({ PDM_DATABASE_URL: await createDatabase('few', { sql: 'alter role few connection limit 20' }) }),
      /limit of the role/,
    ],
  ],
  [`zone ${POOL}`]: [
    [
      'a wrong key of PowerDNS',
      () => startPowerdns({ [`GET ${ZONE}`]: [401, 'Unauthorized'] }),
      /DNSPROVIDER_POWERDNS_API_KEY/,
    ],
    [
      'no zone at PowerDNS',
      () => startPowerdns({ [`GET ${API}`]: [200, { id: 'localhost' }] }),
      /pdnsutil create-zone pool\.test/,
    ],
    [
      'a URL of PowerDNS with /api/v1',
      async () => {
        const powerdns = await startPowerdns({ [`GET ${API}`]: [200, {}], [`GET ${ZONE}`]: [200, native] })
        return { ...powerdns, DNSPROVIDER_POWERDNS_URL: `${powerdns.DNSPROVIDER_POWERDNS_URL}/api/v1` }
      },
      /without \/api\/v1/,
    ],
    [
      'a wrong server id of PowerDNS',
      async () => ({
        ...(await startPowerdns({ [`GET ${API}`]: [200, {}], [`GET ${ZONE}`]: [200, native] })),
        DNSPROVIDER_POWERDNS_SERVER_ID: 'other',
      }),
      /DNSPROVIDER_POWERDNS_SERVER_ID/,
    ],
    [
      'a secondary zone at PowerDNS',
      () => startPowerdns({ [`GET ${ZONE}`]: [200, { ...native, kind: 'Slave' }] }),
      /pdnsutil set-kind/,
    ],
    [
      'a web page in place of PowerDNS',
      () => startPowerdns({ [`GET ${ZONE}`]: [200, '<html>'] }),
      /DNSPROVIDER_POWERDNS_URL/,
    ],
    [
      'a backend of PowerDNS that cannot be written',
      () =>
        startPowerdns({
          [`GET ${ZONE}`]: [200, native],
          [`PATCH ${ZONE}`]: [500, { error: `attempt to write a readonly database ${SECRET}` }],
        }),
      /backend of the zone can be written/,
    ],
    ['no PowerDNS', () => toPowerdnsEnv(closedPort), /DNSPROVIDER_POWERDNS_URL/],
    [
      'a PowerDNS that does not answer',
      () => toPowerdnsEnv(hangingPort),
      /DNSPROVIDER_POWERDNS_URL/,
      { limits: { statementMs: 6_000, callMs: 300 } },
    ],
    [
      'a wrong token of Cloudflare',
      () => cloudflareEnv({ DNSPROVIDER_CLOUDFLARE_API_TOKEN: `${SECRET}-other` }),
      /DNSPROVIDER_CLOUDFLARE_API_TOKEN/,
    ],
    ['no zone at Cloudflare', () => cloudflareEnv(), /must be in the account/],
    [
      'a wrong key of Dynadot',
      () => ({
        DNSPROVIDER_KIND: 'dynadot',
        PDM_TEST_SETTINGS: JSON.stringify({ providerUrl: dynadot.url }),
        DNSPROVIDER_DYNADOT_API_KEY: `${SECRET}-other`,
      }),
      /DNSPROVIDER_DYNADOT_API_KEY/,
    ],
    [
      'no DNS server for updates',
      () => ({
        DNSPROVIDER_KIND: 'rfc2136',
        DNSPROVIDER_RFC2136_HOST: '127.0.0.1',
        DNSPROVIDER_RFC2136_PORT: String(closedPort),
        DNSPROVIDER_RFC2136_TSIG_NAME: 'key.test',
        DNSPROVIDER_RFC2136_TSIG_SECRET: 'bWFyaw==',
      }),
      /DNSPROVIDER_RFC2136_HOST/,
    ],
  ],
  'zone readable.test': [
    [
      'a token of Cloudflare that may only read',
      () => {
        cloudflare.addZone('readable.test')
        cloudflare.schedule('batch', { kind: 'status', status: 403 })
        return cloudflareEnv({ DNSPROVIDER_MANAGED_DOMAINS: 'readable.test' })
      },
      /DNS Write/,
    ],
  ],
  'records in records.test': [
    [
      'a SOA that lets resolvers keep empty answers',
      () => recordsEnv(),
      /SOA of records.test is 3600 s.*60/,
      { soa: 3_600 },
    ],
    ['a zone without SOA', () => recordsEnv(), /delegate it/, { soa: 'ENOTFOUND' }],
  ],
  PDM_RECORDS_URL: [
    [
      'an address of records that no server has',
      () => ({ PDM_RECORDS_URL: `http://127.0.0.1:${closedPort}` }),
      /route/,
    ],
    ['another server at the address of records', () => ({ PDM_RECORDS_URL: cloudflare.url }), /responds with 4/],
  ],
  'object storage': [
    [
      'an object storage whose name does not exist',
      () => ({ OBJECT_STORAGE_DOMAIN: 's3.test' }),
      /correct OBJECT_STORAGE_DOMAIN/,
      { storageFailure: 'dns' },
    ],
    [
      'an object storage with an unknown authority',
      () => ({ OBJECT_STORAGE_DOMAIN: 's3.test' }),
      /OBJECT_STORAGE_CA_FILE/,
      { storageFailure: 'tls' },
    ],
    [
      'an object storage that is down',
      () => ({ OBJECT_STORAGE_DOMAIN: 's3.test' }),
      /OBJECT_STORAGE_DOMAIN/,
      { storageFailure: 'refused' },
    ],
  ],
  'lease witness': [
    [
      'a lease witness that is down',
      () => ({ PDM_WITNESS_URL: `http://127.0.0.1:${closedPort}`, PDM_WITNESS_TOKEN: SECRET }),
      /PDM_WITNESS_URL/,
    ],
    [
      'another server instead of a lease witness',
      () => ({ PDM_WITNESS_URL: cloudflare.url, PDM_WITNESS_TOKEN: SECRET }),
      /PDM_WITNESS/,
    ],
  ],
  'terraform binary': [
    ['no Terraform where deployments are configured', () => ({ PDM_DEPLOYMENT_CONCURRENCY: '4' }), /install Terraform/],
    ['a Terraform that does not exist', () => ({ PDM_TERRAFORM_BINARY: '/no/such/file' }), /install Terraform/],
    ['a Terraform that is not a program', () => ({ PDM_TERRAFORM_BINARY: toPath('plain') }), /install Terraform/],
    [
      'another program in place of Terraform',
      () => ({ PDM_TERRAFORM_BINARY: toScript('other', 'echo hello') }),
      /PDM_TERRAFORM_BINARY/,
    ],
    [
      'an old Terraform',
      () => ({ PDM_TERRAFORM_BINARY: toScript('old', `echo '{"terraform_version":"1.5.7"}'`) }),
      /1\.6\.0 or later/,
    ],
  ],
  'terraform module': [
    [
      'a module folder without a module',
      () => ({ ...goodTerraform(), PDM_TERRAFORM_MODULE: toPath('no-module') }),
      /PDM_TERRAFORM_MODULE/,
    ],
    [
      'a copy of a module without the modules that it calls',
      () => {
        cpSync(LOCAL_DEPLOYMENT, toPath('copied-module'), { recursive: true })
        return { ...goodTerraform(), PDM_TERRAFORM_MODULE: toPath('copied-module') }
      },
      /main\.tf calls the module \.\.\/first-boot-secret, and \S+\/first-boot-secret is not a directory; copy/,
    ],
  ],
  'deployments folder': [
    [
      'a deployments folder that is a file',
      () => ({ ...goodTerraform(), PDM_DEPLOYMENTS_DIR: toPath('empty') }),
      /PDM_DEPLOYMENTS_DIR/,
    ],
    [
      'a deployments folder below a file',
      () => ({ ...goodTerraform(), PDM_DEPLOYMENTS_DIR: join(toPath('empty'), 'a', 'b') }),
      /PDM_DEPLOYMENTS_DIR/,
    ],
  ],
  'terraform environment': [
    [
      'a credential of Terraform that is not set',
      () => ({ ...goodTerraform(), PDM_TERRAFORM_PASS_ENV: 'HCLOUD_TOKEN' }),
      /HCLOUD_TOKEN.*set each variable/,
    ],
  ],
}
const recordsEnv = (): Env => {
  cloudflare.addZone('records.test')
  return cloudflareEnv({ DNSPROVIDER_MANAGED_DOMAINS: 'records.test', PDM_RECORDS: 'records' })
}
const goodTerraform = (): Env => ({
  PDM_TERRAFORM_BINARY: toScript('terraform', `echo '{"terraform_version":"1.11.4"}'`),
  PDM_DEPLOYMENTS_DIR: toPath('deployments'),
})

describe('of each broken setup, one line says what is bad and names the fix', () => {
  test.each(
    Object.entries(broken).flatMap(([check, setups]) =>
      setups.map(([what, env, fix, options = {}]) => [what, { check, env, fix, options }] as const),
    ),
  )('%s', async (_, { check, env, fix, options: { code = 1, ...options } }) => {
    expect(await expectOneProblem({ ...base(), ...(await env()) }, check, fix, options)).toBe(code)
  })

  test('there are at least 40', () => {
    expect(Object.values(broken).flat().length).toBeGreaterThanOrEqual(40)
  })
})

describe('no problem in a good setup', () => {
  test.each<readonly [what: string, env: () => Env | Promise<Env>]>([
    ['plain', () => ({})],
    ['with deployments', () => goodTerraform()],
    ['with object storage', () => ({ OBJECT_STORAGE_DOMAIN: 's3.test' })],
    [
      'with secrets from files',
      () => {
        writeFileSync(toPath('url'), `${goodUrl}\n`)
        writeFileSync(toPath('tokens'), `${'t'.repeat(32)}\n`)
        return {
          PDM_DATABASE_URL: '',
          PDM_DATABASE_URL_FILE: toPath('url'),
          PDM_OPERATOR_TOKENS_FILE: toPath('tokens'),
        }
      },
    ],
    [
      'with PowerDNS',
      () =>
        startPowerdns({
          [`GET ${ZONE}`]: [200, native],
          [`PATCH ${ZONE}`]: [422, { error: 'Changetype not understood' }],
        }),
    ],
    [
      'with Cloudflare',
      () => {
        cloudflare.addZone('good.test')
        return cloudflareEnv({ DNSPROVIDER_MANAGED_DOMAINS: 'good.test' })
      },
    ],
    [
      'with a role that may not create tables',
      async () => {
        await createDatabase('user_of_tables', { migrates: false })
        await createDatabase('with_user', {
          sql: 'grant select, insert, update, delete on all tables in schema public to user_of_tables',
        })
        return withUrl({ username: 'user_of_tables', pathname: '/with_user' })
      },
    ],
    ['before the first start', async () => ({ PDM_DATABASE_URL: await createDatabase('fresh', { migrates: false }) })],
  ])('%s', async (_, env) => {
    const { code, bad } = await findProblems({ ...base(), ...(await env()) })
    expect(bad).toEqual([])
    expect(code).toBe(0)
  })
})

test('the growth of the tables, which is never bad', async () => {
  const url = await createDatabase('grown', {
    sql: `
      insert into allocation_history (pool_domain, subdomain, at, event, from_state, to_state, actor, created_by)
      select '${POOL}', 'name' || i, now() - i * interval '12 minutes', 'reserved', 'none', 'reserved', 'in-cluster', ''
      from generate_series(0, 240) i`,
  })
  const { code, findings } = await findProblems({ ...base(), PDM_DATABASE_URL: url })
  const find = (name: string) => findings.find(({ check }) => check === name)?.text
  // 241 rows in 48 hours.
  expect(find('table allocation_history')).toMatch(/^241 rows, 0.\d MB; each day 12[01] rows, 0.\d MB; .* indefinitely/)
  expect(find('table deployment_log_lines')).toMatch(/^0 rows, .*; each day 0 rows/)
  expect(find('other tables')).toMatch(/pool_allocations \d+ rows, \d/)
  expect(code).toBe(0)
})

test('an invalid configuration names the misspelt variables too', async () => {
  const { code, bad } = await findProblems({ PATH: '', PDM_DATABSE_URL: SECRET, PORT: 'http' })
  expect(bad.map(({ text }) => text.split(' ')[0])).toEqual(['PORT', 'PDM_DATABASE_URL', 'PDM_DATABSE_URL'])
  expect(bad.at(-1)?.advice).toBe('did you mean PDM_DATABASE_URL?')
  expect(code).toBe(2)
})

test('the text has one line for each finding and a summary, and an unknown option ends with 2', async () => {
  const { code, text } = await run(base())
  expect(code).toBe(0)
  expect(text).toMatch(/^good {9}configuration {2,}every variable is valid and known\.$/m)
  expect(text).toMatch(/\nNo problem found\.\n$/)
  expect(await run(base(), { args: ['--yaml'] })).toMatchObject({ code: 2, text: expect.stringContaining('--json') })
})

test('the service logs one line for each thing that it cannot do, keeps serving, and dryRun reports the missing zone', async () => {
  const powerdns = await startPowerdns({ [`GET ${API}`]: [200, { id: 'localhost' }] })
  const api = await startApi(goodUrl, {
    ...powerdns,
    DNSPROVIDER_MANAGED_DOMAINS: `${POOL},other.test`,
    PDM_OPERATOR_TOKENS: 't'.repeat(32),
    OBJECT_STORAGE_DOMAIN: `s3.invalid`,
    PDM_TERRAFORM_BINARY: '/no/such/file',
  })
  const findWarnings = () =>
    api.lines.map(line => JSON.parse(line)).filter(({ level }) => level === 'warn' || level === 40)
  await until('every line is there', () => findWarnings().length >= 3)
  expect((await api.call('GET', '/readyz')).status).toBe(200)
  const response = await sendRequest(`${api.operatorUrl}/api/v1/pool/${POOL}/converge?dryRun=true`, 'POST', undefined, {
    Authorization: `Bearer ${'t'.repeat(32)}`,
  })
  expect(response).toMatchObject({
    status: 503,
    body: { error: 'dns-unavailable', detail: expect.stringContaining(`no zone ${POOL}`) },
  })
  await api.process.stop()
  const texts = Object.fromEntries(findWarnings().map(({ msg, ...fields }) => [msg, fields]))
  expect(texts).toMatchObject({
    'zones unusable': {
      zones: [POOL, 'other.test'],
      reason: expect.stringContaining('no zone'),
      advice: expect.stringContaining('pdnsutil create-zone'),
    },
    'object storage unreachable': { reason: expect.stringContaining('s3.invalid failed') },
    'deployments unavailable': { reason: expect.stringContaining('PDM_TERRAFORM_BINARY') },
  })
  expect(api.lines.join()).not.toContain(SECRET)
})

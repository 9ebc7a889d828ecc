import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server as HttpServer } from 'node:http'
import { createServer as createTcpServer, type Server as TcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '@pool/dev/ports'
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

const listen = async (server: HttpServer | TcpServer): Promise<number> => {
  servers.push(server)
  await new Promise<void>(resolve => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  return typeof address === 'object' && address ? address.port : 0
}

/** A PowerDNS API that answers as this table of paths says; every other path is 404. */
const startPowerdns = async (
  answers: Readonly<Record<string, readonly [status: number, body: object | string]>>,
): Promise<Record<string, string>> => {
  const server = createServer((request, response) => {
    const path = `${request.method} ${request.url?.split('?')[0]}`
    const [status, body] = answers[path] ?? [404, 'Not Found']
    response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body))
  })
  return {
    DNSPROVIDER_KIND: 'powerdns',
    DNSPROVIDER_POWERDNS_URL: `http://127.0.0.1:${await listen(server)}`,
    DNSPROVIDER_POWERDNS_API_KEY: SECRET,
  }
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

interface Broken {
  readonly what: string
  readonly env: (good: Env) => Env | Promise<Env>
  /** The check of the one bad line. */
  readonly check: string
  /** The fix that the line names. */
  readonly fix: RegExp
  /** Default: 1. */
  readonly code?: number
  /** Hosts of the object storage that do not answer. */
  readonly storageFailure?: DoctorRun['storageFailure']
  readonly limits?: DoctorRun['limits']
}

const base = (): Env => ({ PDM_DATABASE_URL: goodUrl, PATH: '' })
const withUrl = (parts: Partial<Pick<URL, 'port' | 'username' | 'password' | 'pathname'>>): string =>
  Object.assign(new URL(goodUrl), parts).href

const configuration: Broken[] = [
  { what: 'an invalid value', env: env => ({ ...env, PORT: 'http' }), check: 'configuration', fix: /PORT/, code: 2 },
  { what: 'no database URL', env: () => ({ PATH: '' }), check: 'configuration', fix: /PDM_DATABASE_URL/, code: 2 },
  {
    what: 'a database URL that is not a URL',
    env: env => ({ ...env, PDM_DATABASE_URL: `postgres://u:${SECRET}%zz@h/d` }),
    check: 'configuration',
    fix: /percent-encoded/,
    code: 2,
  },
  {
    what: 'a secret file that does not exist',
    env: () => ({ PDM_DATABASE_URL_FILE: '/no/such/file', PATH: '' }),
    check: 'configuration',
    fix: /PDM_DATABASE_URL_FILE.*correct the path/,
    code: 2,
  },
  {
    what: 'a secret in the environment and in a file',
    env: env => ({ ...env, PDM_DATABASE_URL_FILE: toPath('plain') }),
    check: 'configuration',
    fix: /unset one of them/,
    code: 2,
  },
  {
    what: 'the built-in DNS server for public names',
    env: env => ({ ...env, DNSPROVIDER_MANAGED_DOMAINS: 'pool.cloud' }),
    check: 'configuration',
    fix: /choose the provider/,
    code: 2,
  },
  {
    what: 'a provider without its key',
    env: env => ({ ...env, DNSPROVIDER_KIND: 'cloudflare' }),
    check: 'configuration',
    fix: /DNSPROVIDER_CLOUDFLARE_API_TOKEN/,
    code: 2,
  },
  {
    what: 'a trusted proxy that is not a network',
    env: env => ({ ...env, PDM_TRUSTED_PROXIES: 'proxy.internal' }),
    check: 'configuration',
    fix: /10\.0\.0\.0\/8/,
    code: 2,
  },
  {
    what: 'a misspelt variable',
    env: env => ({ ...env, DNSPROVIDER_MANGED_DOMAINS: SECRET }),
    check: 'configuration',
    fix: /DNSPROVIDER_MANAGED_DOMAINS\?/,
  },
  {
    what: 'a misspelt prefix',
    env: env => ({ ...env, PMD_DRAIN_DELAY: '5s' }),
    check: 'configuration',
    fix: /PDM_DRAIN_DELAY\?/,
  },
  {
    what: 'proxies that are everywhere',
    env: env => ({ ...env, PDM_TRUSTED_PROXIES: '0.0.0.0/0' }),
    check: 'configuration',
    fix: /list the networks of your proxies only/,
  },
  {
    what: 'a short operator token',
    env: env => ({ ...env, PDM_OPERATOR_TOKENS: SECRET }),
    check: 'configuration',
    fix: /openssl rand/,
  },
]

const database: Broken[] = [
  {
    what: 'no server',
    env: env => ({ ...env, PDM_DATABASE_URL: withUrl({ port: String(closedPort) }) }),
    check: 'database',
    fix: /start the server/,
  },
  {
    what: 'a server that does not answer',
    limits: { statementMs: 300, callMs: 8_000 },
    env: env => ({ ...env, PDM_DATABASE_URL: withUrl({ port: String(hangingPort) }) }),
    check: 'database',
    fix: /start the server/,
  },
  {
    what: 'a wrong password',
    env: env => ({ ...env, PDM_DATABASE_URL: withUrl({ password: `${SECRET}-other` }) }),
    check: 'database',
    fix: /correct them in PDM_DATABASE_URL/,
  },
  {
    what: 'a database that no entry of pg_hba.conf names',
    env: async env => ({ ...env, PDM_DATABASE_URL: await createUnlistedDatabase() }),
    check: 'database',
    fix: /not admit the user to the database from this address.*name of the database in PDM_DATABASE_URL.*pg_hba\.conf/,
  },
  {
    what: 'a database that does not exist',
    env: env => ({ ...env, PDM_DATABASE_URL: withUrl({ pathname: '/none' }) }),
    check: 'database',
    fix: /create it/,
  },
  {
    what: 'a server without TLS',
    env: env => ({ ...env, PDM_DATABASE_URL: `${goodUrl}?sslmode=require` }),
    check: 'database',
    fix: /sslmode/,
  },
  {
    what: 'an authority file that does not exist',
    env: env => ({ ...env, PDM_DATABASE_URL: `${goodUrl}?sslmode=verify-full&sslrootcert=/no/such/file` }),
    check: 'database',
    fix: /sslrootcert/,
  },
  {
    what: 'a superuser',
    env: env => ({ ...env, PDM_DATABASE_URL: `${postgres.url}` }),
    check: 'database role',
    fix: /create role/,
  },
  {
    what: 'a role that may not create tables',
    env: async env => ({
      ...env,
      PDM_DATABASE_URL: await createDatabase('no_create', {
        migrates: false,
        sql: 'alter database no_create owner to postgres; revoke create on schema public from public',
      }),
    }),
    check: 'database schema',
    fix: /grant usage, create/,
  },
  {
    what: 'a role without rights on the tables',
    env: async env => {
      await createDatabase('owner_of_tables')
      await createDatabase('no_rights', { migrates: false })
      return { ...env, PDM_DATABASE_URL: withUrl({ username: 'no_rights', pathname: '/owner_of_tables' }) }
    },
    check: 'database privileges',
    fix: /grant select, insert, update, delete/,
  },
  {
    what: 'a role that may only read',
    env: async env => {
      await createDatabase('reader', { migrates: false })
      await createDatabase('for_reader', { sql: 'grant select on all tables in schema public to reader' })
      return { ...env, PDM_DATABASE_URL: withUrl({ username: 'reader', pathname: '/for_reader' }) }
    },
    check: 'database privileges',
    fix: /grant select, insert, update, delete/,
  },
  // It has no other bad line, so the doctor needs no write.
  {
    what: 'a read-only database',
    env: async env => ({
      ...env,
      PDM_DATABASE_URL: await createDatabase('read_only', {
        sql: 'alter database read_only set default_transaction_read_only = on',
      }),
    }),
    check: 'database writes',
    fix: /default_transaction_read_only = off/,
  },
  {
    what: 'a schema of a newer build',
    env: async env => ({
      ...env,
      PDM_DATABASE_URL: await createDatabase('newer', {
        sql: `insert into allocation_api_migrations (version, name, oldest_build) values (999, 'later', 999)`,
      }),
    }),
    check: 'database schema',
    fix: /run a newer build/,
  },
  {
    what: 'commits that do not reach the disk',
    env: async env => ({
      ...env,
      PDM_DATABASE_URL: await createDatabase('volatile', { sql: 'alter role volatile set synchronous_commit = off' }),
    }),
    check: 'database replication',
    fix: /synchronous_commit to on/,
  },
  {
    what: 'a role with few connections',
    env: async env => ({
      ...env,
      PDM_DATABASE_URL: await createDatabase('few', { sql: 'alter role few connection limit 20' }),
    }),
    check: 'database connections',
    fix: /limit of the role/,
  },
]

const dns: Broken[] = [
  {
    what: 'a wrong key of PowerDNS',
    env: async env => ({ ...env, ...(await startPowerdns({ [`GET ${ZONE}`]: [401, 'Unauthorized'] })) }),
    check: `zone ${POOL}`,
    fix: /DNSPROVIDER_POWERDNS_API_KEY/,
  },
  {
    what: 'no zone at PowerDNS',
    env: async env => ({ ...env, ...(await startPowerdns({ [`GET ${API}`]: [200, { id: 'localhost' }] })) }),
    check: `zone ${POOL}`,
    fix: /pdnsutil create-zone pool\.test/,
  },
  {
    what: 'a URL of PowerDNS with /api/v1',
    env: async env => {
      const powerdns = await startPowerdns({ [`GET ${API}`]: [200, {}], [`GET ${ZONE}`]: [200, native] })
      return { ...env, ...powerdns, DNSPROVIDER_POWERDNS_URL: `${powerdns.DNSPROVIDER_POWERDNS_URL}/api/v1` }
    },
    check: `zone ${POOL}`,
    fix: /without \/api\/v1/,
  },
  {
    what: 'a wrong server id of PowerDNS',
    env: async env => ({
      ...env,
      ...(await startPowerdns({ [`GET ${API}`]: [200, {}], [`GET ${ZONE}`]: [200, native] })),
      DNSPROVIDER_POWERDNS_SERVER_ID: 'other',
    }),
    check: `zone ${POOL}`,
    fix: /DNSPROVIDER_POWERDNS_SERVER_ID/,
  },
  {
    what: 'a secondary zone at PowerDNS',
    env: async env => ({ ...env, ...(await startPowerdns({ [`GET ${ZONE}`]: [200, { ...native, kind: 'Slave' }] })) }),
    check: `zone ${POOL}`,
    fix: /pdnsutil set-kind/,
  },
  {
    what: 'a web page in place of PowerDNS',
    env: async env => ({ ...env, ...(await startPowerdns({ [`GET ${ZONE}`]: [200, '<html>'] })) }),
    check: `zone ${POOL}`,
    fix: /DNSPROVIDER_POWERDNS_URL/,
  },
  {
    what: 'a backend of PowerDNS that cannot be written',
    env: async env => ({
      ...env,
      ...(await startPowerdns({
        [`GET ${ZONE}`]: [200, native],
        [`PATCH ${ZONE}`]: [500, { error: `attempt to write a readonly database ${SECRET}` }],
      })),
    }),
    check: `zone ${POOL}`,
    fix: /backend of the zone can be written/,
  },
  {
    what: 'no PowerDNS',
    env: env => ({
      ...env,
      DNSPROVIDER_KIND: 'powerdns',
      DNSPROVIDER_POWERDNS_URL: `http://127.0.0.1:${closedPort}`,
      DNSPROVIDER_POWERDNS_API_KEY: SECRET,
    }),
    check: `zone ${POOL}`,
    fix: /DNSPROVIDER_POWERDNS_URL/,
  },
  {
    what: 'a PowerDNS that does not answer',
    limits: { statementMs: 6_000, callMs: 300 },
    env: env => ({
      ...env,
      DNSPROVIDER_KIND: 'powerdns',
      DNSPROVIDER_POWERDNS_URL: `http://127.0.0.1:${hangingPort}`,
      DNSPROVIDER_POWERDNS_API_KEY: SECRET,
    }),
    check: `zone ${POOL}`,
    fix: /DNSPROVIDER_POWERDNS_URL/,
  },
  {
    what: 'a wrong token of Cloudflare',
    env: env => ({
      ...env,
      DNSPROVIDER_KIND: 'cloudflare',
      PDM_TEST_SETTINGS: JSON.stringify({ providerUrl: cloudflare.url }),
      DNSPROVIDER_CLOUDFLARE_API_TOKEN: `${SECRET}-other`,
    }),
    check: `zone ${POOL}`,
    fix: /DNSPROVIDER_CLOUDFLARE_API_TOKEN/,
  },
  {
    what: 'no zone at Cloudflare',
    env: env => ({
      ...env,
      DNSPROVIDER_KIND: 'cloudflare',
      PDM_TEST_SETTINGS: JSON.stringify({ providerUrl: cloudflare.url }),
      DNSPROVIDER_CLOUDFLARE_API_TOKEN: SECRET,
    }),
    check: `zone ${POOL}`,
    fix: /must be in the account/,
  },
  {
    what: 'a token of Cloudflare that may only read',
    env: env => {
      cloudflare.addZone('readable.test')
      cloudflare.schedule('batch', { kind: 'status', status: 403 })
      return {
        ...env,
        DNSPROVIDER_KIND: 'cloudflare',
        DNSPROVIDER_MANAGED_DOMAINS: 'readable.test',
        PDM_TEST_SETTINGS: JSON.stringify({ providerUrl: cloudflare.url }),
        DNSPROVIDER_CLOUDFLARE_API_TOKEN: SECRET,
      }
    },
    check: 'zone readable.test',
    fix: /DNS Write/,
  },
  {
    what: 'a wrong key of Dynadot',
    env: env => ({
      ...env,
      DNSPROVIDER_KIND: 'dynadot',
      PDM_TEST_SETTINGS: JSON.stringify({ providerUrl: dynadot.url }),
      DNSPROVIDER_DYNADOT_API_KEY: `${SECRET}-other`,
    }),
    check: `zone ${POOL}`,
    fix: /DNSPROVIDER_DYNADOT_API_KEY/,
  },
  {
    what: 'no DNS server for updates',
    env: env => ({
      ...env,
      DNSPROVIDER_KIND: 'rfc2136',
      DNSPROVIDER_RFC2136_HOST: '127.0.0.1',
      DNSPROVIDER_RFC2136_PORT: String(closedPort),
      DNSPROVIDER_RFC2136_TSIG_NAME: 'key.test',
      DNSPROVIDER_RFC2136_TSIG_SECRET: 'bWFyaw==',
    }),
    check: `zone ${POOL}`,
    fix: /DNSPROVIDER_RFC2136_HOST/,
  },
]

const machine: Broken[] = [
  {
    what: 'an object storage whose name does not exist',
    env: env => ({ ...env, OBJECT_STORAGE_DOMAIN: 's3.test' }),
    storageFailure: 'dns',
    check: 'object storage',
    fix: /correct OBJECT_STORAGE_DOMAIN/,
  },
  {
    what: 'an object storage with an unknown authority',
    env: env => ({ ...env, OBJECT_STORAGE_DOMAIN: 's3.test' }),
    storageFailure: 'tls',
    check: 'object storage',
    fix: /OBJECT_STORAGE_CA_FILE/,
  },
  {
    what: 'an object storage that is down',
    env: env => ({ ...env, OBJECT_STORAGE_DOMAIN: 's3.test' }),
    storageFailure: 'refused',
    check: 'object storage',
    fix: /OBJECT_STORAGE_DOMAIN/,
  },
  {
    what: 'a lease witness that is down',
    env: env => ({ ...env, PDM_WITNESS_URL: `http://127.0.0.1:${closedPort}`, PDM_WITNESS_TOKEN: SECRET }),
    check: 'lease witness',
    fix: /PDM_WITNESS_URL/,
  },
  {
    what: 'another server instead of a lease witness',
    env: env => ({ ...env, PDM_WITNESS_URL: cloudflare.url, PDM_WITNESS_TOKEN: SECRET }),
    check: 'lease witness',
    fix: /PDM_WITNESS/,
  },
  {
    what: 'no Terraform where deployments are configured',
    env: env => ({ ...env, PDM_DEPLOYMENT_CONCURRENCY: '4' }),
    check: 'terraform binary',
    fix: /install Terraform/,
  },
  {
    what: 'a Terraform that does not exist',
    env: env => ({ ...env, PDM_TERRAFORM_BINARY: '/no/such/file' }),
    check: 'terraform binary',
    fix: /install Terraform/,
  },
  {
    what: 'a Terraform that is not a program',
    env: env => ({ ...env, PDM_TERRAFORM_BINARY: toPath('plain') }),
    check: 'terraform binary',
    fix: /install Terraform/,
  },
  {
    what: 'another program in place of Terraform',
    env: env => ({ ...env, PDM_TERRAFORM_BINARY: toScript('other', 'echo hello') }),
    check: 'terraform binary',
    fix: /PDM_TERRAFORM_BINARY/,
  },
  {
    what: 'an old Terraform',
    env: env => ({ ...env, PDM_TERRAFORM_BINARY: toScript('old', `echo '{"terraform_version":"1.5.7"}'`) }),
    check: 'terraform binary',
    fix: /1\.6\.0 or later/,
  },
  {
    what: 'a module folder without a module',
    env: env => ({ ...env, ...goodTerraform(), PDM_TERRAFORM_MODULE: toPath('no-module') }),
    check: 'terraform module',
    fix: /PDM_TERRAFORM_MODULE/,
  },
  {
    what: 'a copy of a module without the modules that it calls',
    env: env => {
      cpSync(LOCAL_DEPLOYMENT, toPath('copied-module'), { recursive: true })
      return { ...env, ...goodTerraform(), PDM_TERRAFORM_MODULE: toPath('copied-module') }
    },
    check: 'terraform module',
    fix: /storage\.tf calls the module \.\.\/first-boot-secret, and \S+\/first-boot-secret is not a directory; copy/,
  },
  {
    what: 'a deployments folder that is a file',
    env: env => ({ ...env, ...goodTerraform(), PDM_DEPLOYMENTS_DIR: toPath('empty') }),
    check: 'deployments folder',
    fix: /PDM_DEPLOYMENTS_DIR/,
  },
  {
    what: 'a deployments folder below a file',
    env: env => ({ ...env, ...goodTerraform(), PDM_DEPLOYMENTS_DIR: join(toPath('empty'), 'a', 'b') }),
    check: 'deployments folder',
    fix: /PDM_DEPLOYMENTS_DIR/,
  },
  {
    what: 'a credential of Terraform that is not set',
    env: env => ({ ...env, ...goodTerraform(), PDM_TERRAFORM_PASS_ENV: 'HCLOUD_TOKEN' }),
    check: 'terraform environment',
    fix: /HCLOUD_TOKEN.*set each variable/,
  },
]
const goodTerraform = (): Env => ({
  PDM_TERRAFORM_BINARY: toScript('terraform', `echo '{"terraform_version":"1.11.4"}'`),
  PDM_DEPLOYMENTS_DIR: toPath('deployments'),
})

describe('of each broken setup, one line says what is bad and names the fix', () => {
  test.each([...configuration, ...database, ...dns, ...machine])(
    '$what',
    async ({ env, check, fix, code = 1, storageFailure, limits }) => {
      expect(await expectOneProblem(await env(base()), check, fix, { storageFailure, limits })).toBe(code)
    },
  )

  test('there are at least 40', () => {
    expect([...configuration, ...database, ...dns, ...machine].length).toBeGreaterThanOrEqual(40)
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
        return {
          DNSPROVIDER_KIND: 'cloudflare',
          DNSPROVIDER_MANAGED_DOMAINS: 'good.test',
          PDM_TEST_SETTINGS: JSON.stringify({ providerUrl: cloudflare.url }),
          DNSPROVIDER_CLOUDFLARE_API_TOKEN: SECRET,
        }
      },
    ],
    [
      'with a role that may not create tables',
      async () => {
        await createDatabase('user_of_tables', { migrates: false })
        await createDatabase('with_user', {
          sql: 'grant select, insert, update, delete on all tables in schema public to user_of_tables',
        })
        return { PDM_DATABASE_URL: withUrl({ username: 'user_of_tables', pathname: '/with_user' }) }
      },
    ],
    ['before the first start', async () => ({ PDM_DATABASE_URL: await createDatabase('fresh', { migrates: false }) })],
  ])('%s', async (_, env) => {
    const { code, bad } = await findProblems({ ...base(), ...(await env()) })
    expect(bad).toEqual([])
    expect(code).toBe(0)
  })
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

import { findProgram } from '@pool/dev/server-process'
import { createDatabaseClient } from '@pool/runtime/database/client'
import { type DedicatedPostgres, startDedicatedPostgres } from '@pool/test-kit/dedicated-postgres.ts'
import { missingPowerdns, startPowerdns } from '@pool/test-kit/dns/powerdns.ts'
import { shouldSkip } from '@pool/test-kit/optional-deps.ts'
import { missingPgbouncer, startPgbouncer } from '@pool/test-kit/pgbouncer.ts'
import { until } from '@pool/test-kit/poll.ts'
import { startReplicatedPostgres } from '@pool/test-kit/replicated-postgres.ts'
import { runUntilExit, toApiEntry } from '@pool/test-kit/services.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type KeyName, knot, startServer } from '../providers/support/rfc2136.ts'
import { createRoleDatabase, type Env, expectOneProblem, findProblems, SECRET } from '../support/doctor.ts'

// The doctor against real servers: each good setup has no problem, and each broken one has one.

let postgres: DedicatedPostgres
let goodUrl: string
beforeAll(async () => {
  postgres = await startDedicatedPostgres()
  goodUrl = await createRoleDatabase(postgres.url, 'good')
})
afterAll(() => postgres?.remove())

const base = (url = goodUrl): Env => ({ PDM_DATABASE_URL: url, PATH: '' })
const expectNoProblem = async (env: Env): Promise<void> => {
  expect(await findProblems(env)).toMatchObject({ code: 0, bad: [] })
}

describe.skipIf(shouldSkip(missingPgbouncer))('PgBouncer', () => {
  const settings = (role: string): string => `
    alter role ${role} set client_connection_check_interval = '2s';
    alter role ${role} set lock_timeout = '5s';
    alter role ${role} set idle_in_transaction_session_timeout = '60s'`
  const check = async (
    role: string,
    { query = '?prepare=false', lines = 'server_login_retry = 1', hasSettings = true, more = '', size = 8 },
    expectation: (env: Env) => Promise<unknown>,
  ): Promise<void> => {
    const url = await createRoleDatabase(postgres.url, role, { sql: `${hasSettings ? settings(role) : ''}; ${more}` })
    const pgbouncer = await startPgbouncer(url, size, {
      settings: `stats_users = ${role}\n${lines}`,
      preparedStatements: false,
    })
    try {
      await expectation(base(pgbouncer.url + query))
    } finally {
      await pgbouncer.stop()
    }
  }

  test('a good setup', () => check('pooled', {}, expectNoProblem))

  test('prepared statements that the pooler does not support', () =>
    check('prepared', { query: '' }, env =>
      expectOneProblem(env, 'database prepared statements', /prepare=false to PDM_DATABASE_URL/),
    ))

  test('the default of server_login_retry', () =>
    check('slow_retry', { lines: '' }, env =>
      expectOneProblem(env, 'pgbouncer server_login_retry', /15 s.*server_login_retry = 1/),
    ))

  test('fewer server connections than the service needs', () =>
    check('narrow', { size: 1 }, env =>
      expectOneProblem(
        env,
        'pgbouncer default_pool_size',
        /1 server connections; the service needs 2, .*; set default_pool_size = 20/,
      ),
    ))

  test('settings that the pooler does not pass on', () =>
    check('no_settings', { hasSettings: false }, env =>
      expectOneProblem(env, 'database sessions', /alter role "no_settings" set client_connection_check_interval/),
    ))

  /** What the doctor and the start say of it; the start ends. */
  const expectBoth = (check: string, text: RegExp) => async (env: Env) => {
    await expectOneProblem(env, check, text)
    const { code, lines } = await runUntilExit({ entry: toApiEntry(), env: { ...env, PORT: '0' } })
    expect(code).toBe(1)
    expect(lines.at(-1)).toMatch(text)
  }

  test('a setting of the role that changes results, which the pooler does not replace', () =>
    check(
      'unpinned',
      {
        more: `alter role unpinned set default_transaction_isolation = 'serializable'; alter role unpinned set datestyle = 'German'`,
      },
      expectBoth(
        'database sessions',
        /not pass on default_transaction_isolation; execute alter role "unpinned" set default_transaction_isolation = 'read committed'/,
      ),
    ))

  test('a login role that takes on another one: settings belong to the login role', () =>
    check(
      'login',
      {
        hasSettings: false,
        more: 'create role owner_of_tables; grant owner_of_tables to login; reassign owned by login to owner_of_tables; alter role login set role owner_of_tables',
      },
      env => expectOneProblem(env, 'database sessions', /alter role "login" set/),
    ))

  test('a pool mode without transactions', () =>
    check(
      'statement',
      { lines: 'server_login_retry = 1\npool_mode = statement' },
      expectBoth('database prepared statements', /pool_mode = statement.*set pool_mode = transaction/),
    ))
})

describe('replication', () => {
  test.each([
    ['synchronous', expectNoProblem],
    ['asynchronous', (env: Env) => expectOneProblem(env, 'database replication', /synchronous_standby_names/)],
  ] as const)('%s', async (replication, expectation) => {
    const pair = await startReplicatedPostgres(replication)
    try {
      const primary = await createRoleDatabase(pair.primaryUrl(), 'replicated_owner')
      await expectation(base(primary))
    } finally {
      await pair.remove()
    }
  })

  test('a standby', async () => {
    const pair = await startReplicatedPostgres('synchronous')
    try {
      const primary = await createRoleDatabase(pair.primaryUrl(), 'standby_owner')
      const standby = Object.assign(new URL(primary), { port: new URL(pair.standbyUrl()).port }).href
      // A synchronous standby has received the role, but may not have applied it yet.
      const sql = createDatabaseClient(standby, { maxConnections: 1, applicationName: 'tests' })
      await until('the standby has the role', () =>
        sql`select 1`.then(
          () => true,
          () => false,
        ),
      )
      await sql.end({ timeout: 1 })
      await expectOneProblem(base(standby), 'database writes', /primary/)
    } finally {
      await pair.remove()
    }
  })
})

describe.skipIf(shouldSkip(missingPowerdns))('PowerDNS', () => {
  test('a good zone does not change; a serial that stays, a missing zone and a wrong key are one problem each', async () => {
    await using server = await startPowerdns()
    await server.createZone('pool.test')
    const { url, apiKey } = server.options
    const env = {
      ...base(),
      DNSPROVIDER_KIND: 'powerdns',
      DNSPROVIDER_POWERDNS_URL: url,
      DNSPROVIDER_POWERDNS_API_KEY: apiKey,
    }
    const before = await server.call('GET', '/zones/pool.test.')
    await expectNoProblem(env)
    expect(await server.call('GET', '/zones/pool.test.')).toEqual(before)
    await expectOneProblem(
      { ...env, DNSPROVIDER_MANAGED_DOMAINS: 'none.test' },
      'zone none.test',
      /pdnsutil create-zone none\.test/,
    )
    await expectOneProblem(
      { ...env, DNSPROVIDER_POWERDNS_API_KEY: SECRET },
      'zone pool.test',
      /DNSPROVIDER_POWERDNS_API_KEY/,
    )
    // As pdnsutil creates a zone.
    await server.call('PUT', '/zones/pool.test.', { soa_edit_api: '' })
    await expectOneProblem(env, 'zone pool.test', /serial of pool\.test does not increase.*SOA-EDIT-API DEFAULT/)
  })

  test('a pool in a larger zone is good; a zone or a record that hides a name, or the pool, is one problem', async () => {
    await using server = await startPowerdns()
    await server.createZone('test')
    const desired = JSON.stringify([{ name: 'acme.pool.test', type: 'A', ttl: 60, values: ['192.0.2.1'] }])
    const url = await createRoleDatabase(postgres.url, 'hidden', {
      sql: `insert into dns_names (zone, subdomain, version, desired, changed_at, next_attempt_at)
        values ('pool.test', 'acme', nextval('dns_version'), '${desired}', now(), now())`,
    })
    const env = {
      ...base(url),
      DNSPROVIDER_KIND: 'powerdns',
      DNSPROVIDER_POWERDNS_URL: server.options.url,
      DNSPROVIDER_POWERDNS_API_KEY: server.options.apiKey,
    }
    const { bad, findings } = await findProblems(env)
    const text = expect.stringMatching('^the zone test has it, and powerdns lets the service read and change it')
    expect([bad, findings.find(({ check }) => check === 'zone pool.test')]).toMatchObject([[], { text }])
    const delegation = { name: 'pool.test', type: 'NS', ttl: 300, values: ['elsewhere.example.'] }
    await server.put('test', delegation)
    const hidesPool = /record of type NS at pool\.test hides every name of the pool; Delete that record/
    for (const one of [env, { ...env, ...base() }]) await expectOneProblem(one, 'zone pool.test', hidesPool)
    await server.edit('test', { remove: [delegation], put: [] })
    await server.createZone('acme.pool.test')
    await expectOneProblem(env, 'zone pool.test', /acme\.pool\.test, answers for acme\.pool\.test; Delete that zone/)
    await server.createZone('pool.test')
    const configured = { ...env, DNSPROVIDER_ZONES: 'pool.test=test' }
    await expectOneProblem(configured, 'zone pool.test', /pool\.test answers for the pool.*DNSPROVIDER_ZONES/)
  })
})

describe.skipIf(shouldSkip(knot.missingPrograms))('Knot over RFC 2136', () => {
  test('a good zone; a key that may not update, a wrong secret and a missing zone are one problem each', async () => {
    await using server = await startServer(knot)
    const toEnv = (key: KeyName): Env => {
      const { server: address, tsig } = server.options(key)
      return {
        ...base(),
        DNSPROVIDER_KIND: 'rfc2136',
        DNSPROVIDER_MANAGED_DOMAINS: server.zone,
        DNSPROVIDER_RFC2136_HOST: address.host,
        DNSPROVIDER_RFC2136_PORT: String(address.port),
        DNSPROVIDER_RFC2136_TSIG_NAME: tsig.name,
        DNSPROVIDER_RFC2136_TSIG_SECRET: tsig.secret,
      }
    }
    const good = toEnv('full.key.test')
    await expectNoProblem(good)
    const check = `zone ${server.zone}`
    await expectOneProblem(toEnv('reader.key.test'), check, /transfer and update/)
    await expectOneProblem({ ...good, DNSPROVIDER_RFC2136_TSIG_SECRET: 'bWFyaw==' }, check, /TSIG key/)
    await expectOneProblem(
      { ...good, DNSPROVIDER_MANAGED_DOMAINS: 'none.test' },
      'zone none.test',
      /primary of none\.test/,
    )
  })
})

const terraform = findProgram('terraform') ?? findProgram('tofu')
const missingTerraform = terraform
  ? undefined
  : 'Terraform is not installed, a test of the doctor is skipped: https://developer.hashicorp.com/terraform/install'

test.skipIf(shouldSkip(missingTerraform))('deployments with Terraform', async () => {
  await expectNoProblem({ ...base(), PDM_TERRAFORM_BINARY: terraform ?? '', PATH: process.env.PATH ?? '' })
})

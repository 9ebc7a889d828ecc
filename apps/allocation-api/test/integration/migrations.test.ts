import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { createDatabaseClient, type Sql } from '@pool/runtime/database/client'
import { type Migration, migrate, type Schema } from '@pool/runtime/database/migrations'
import { dumpSchema } from '@pool/test-kit/dump-schema.ts'
import { until } from '@pool/test-kit/poll.ts'
import { runUntilExit, startApi, toApiEntry } from '@pool/test-kit/services.ts'
import { expect, onTestFinished, test } from 'vitest'
import { readSchema } from '../../src/database/schema.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { holdLock, untilSessionsWait } from '../support/locks.ts'

const schema = await readSchema()
const versions = schema.migrations.map(({ version }) => version)
const newest = versions.length
const upTo = (version: number) => ({ ...schema, migrations: schema.migrations.slice(0, version) })
const toPath = (version: number, extension: 'txt' | 'sql'): string =>
  fileURLToPath(new URL(`./golden/${String(version).padStart(4, '0')}.${extension}`, import.meta.url))

/** What the next build may add. With it, the upgrade is proven also while the schema has one version. */
const next: Migration = {
  version: newest + 1,
  name: 'next',
  oldestBuild: newest,
  script: `
    alter table pool_allocations add column note text not null default '';
    create table notes (id integer, constraint notes_pkey primary key (id));`,
}
const withNext: Schema = { ...schema, migrations: [...schema.migrations, next] }

/** A database of a version, without rows. */
const createDatabaseAt = async (version: number): Promise<TestDatabase> => {
  const database = await createTestDatabase({ schema: false, connections: 2 })
  onTestFinished(() => database.drop())
  if (version > 0) await migrate(database.sql, upTo(version))
  return database
}

/** Inserts the rows that the builds up to `version` write. */
const insertRows = async (sql: Sql, version: number): Promise<void> => {
  for (const path of versions.slice(0, version).map(number => toPath(number, 'sql'))) {
    if (existsSync(path)) await sql.unsafe(await readFile(path, 'utf8')).simple()
  }
}

/** Every row of every table, by table. */
const readRows = async (sql: Sql): Promise<Map<string, Record<string, unknown>[]>> => {
  const tables = await sql<{ name: string }[]>`
    select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> ${schema.versionTable} order by 1`
  const rows = new Map<string, Record<string, unknown>[]>()
  for (const { name } of tables) {
    const found = await sql<{ row: Record<string, unknown> }[]>`
      select to_jsonb(t) as row from ${sql(name)} as t order by to_jsonb(t)::text collate "C"`
    rows.set(
      name,
      found.map(({ row }) => row),
    )
  }
  return rows
}

const createReplicas = (url: string, count: number): Sql[] => {
  const replicas = Array.from({ length: count }, () =>
    createDatabaseClient(url, { maxConnections: 1, applicationName: 'replica' }),
  )
  onTestFinished(async () => void (await Promise.all(replicas.map(replica => replica.end()))))
  return replicas
}

test('the newest version matches its golden dump, also if ten replicas migrate concurrently', async () => {
  const { url, sql } = await createDatabaseAt(0)
  await Promise.all(createReplicas(url, 10).map(replica => migrate(replica, schema)))
  await expect(await dumpSchema(sql)).toMatchFileSnapshot(toPath(newest, 'txt'))
})

test('replicas of this build and the next upgrade the rows of every table concurrently, and this build still serves them', async () => {
  const { url, sql } = await createDatabaseAt(versions[0] ?? 0)
  await insertRows(sql, 1)
  const before = await readRows(sql)
  expect([...before.values()].filter(rows => rows.length === 0)).toEqual([])
  await Promise.all(createReplicas(url, 6).map((replica, index) => migrate(replica, index % 2 ? withNext : schema)))
  const after = await readRows(sql)
  // 0002 moves the outcomes into the rows of the keys.
  const outcomes = before.get('idempotency_results') ?? []
  before.delete('idempotency_results')
  expect(after.get('idempotency_keys')).toEqual(outcomes.map(outcome => expect.objectContaining(outcome)))
  for (const [table, rows] of before) {
    // 0006 renames a table.
    expect(after.get(table === 'dns_zone_locks' ? 'zone_leases' : table), table).toEqual(
      rows.map(row => expect.objectContaining(row)),
    )
  }
  expect(after.get('notes')).toEqual([])

  const api = await startApi(url, { PDM_DNS_COMMIT_WAIT: '0s' })
  onTestFinished(async () => void (await api.process.kill()))
  const { body } = await api.call('GET', '/api/v1/pool/pool.test/list')
  expect(JSON.stringify(body)).toMatch(/acme.*again.*cluster.*kept/)
  const commit = {
    subdomain: 'kept',
    reservationToken: 'kept',
    loadBalancerIP: '192.0.2.3',
    sovereignFQDN: 'kept.pool.test',
  }
  expect((await api.call('POST', '/api/v1/pool/pool.test/commit', commit)).body).toMatchObject({ subdomain: 'kept' })
  expect((await api.call('GET', '/api/v1/pool/pool.test/history')).status).toBe(200)

  const setOldestBuild = async (build: number) =>
    void (await sql`update ${sql(schema.versionTable)} set oldest_build = ${build} where version = ${next.version}`)
  const getReadiness = async () => (await api.call('GET', '/readyz')).status
  expect(await getReadiness()).toBe(200)
  await setOldestBuild(next.version)
  await until('the replica is not ready', async () => (await getReadiness()) === 503)
  // The probe can fail first for another reason, on a busy machine.
  await until('the log has the reason once', () => {
    return api.lines.filter(line => line.includes(`requires build ${next.version} or newer`)).length === 1
  })
  await setOldestBuild(newest)
  await until('the replica is ready', async () => (await getReadiness()) === 200)
})

/** Runs a command of the service until it exits. */
const run = (command: 'main' | 'migrate', url: string, ...args: string[]) =>
  runUntilExit({
    entry: toApiEntry(command),
    args,
    env: { PORT: '0', PDM_OPERATOR_PORT: '0', PDM_DATABASE_URL: url, PDM_LOG_LEVEL: 'warn' },
  })

/** The sequence of 19 migrations that the baseline replaced. The last ones were for build 8 or newer. */
const toEarlierSchema = (count: number): Schema => ({
  ...schema,
  migrations: Array.from({ length: count }, (_, index) => ({
    version: index + 1,
    name: index === 0 ? 'initial' : `step-${index + 1}`,
    oldestBuild: index < 7 ? 1 : 8,
    script: index === 0 ? 'create table pool_allocations ();' : 'select 1;',
  })),
})
const EARLIER_BUILD =
  'migration 1 of the database is "initial", which this build does not contain; ' +
  'export it with the build that created it (poolctl export), then import it into an empty database with this build (poolctl import)'

test.each<[what: string, prepare: (sql: Sql) => Promise<unknown>, message: string]>([
  [
    'tables without a version',
    sql => sql.unsafe('create table pool_allocations (id integer); create table invoices (id integer)'),
    'the database has tables without a version (pool_allocations, but no allocation_api_migrations): ' +
      'they are from a build without versions or of another program; use an empty database',
  ],
  [
    'a schema that requires a newer build',
    sql => migrate(sql, { ...withNext, migrations: [...schema.migrations, { ...next, oldestBuild: next.version }] }),
    `version ${next.version} of the schema requires build ${next.version} or newer, and this is build ${newest}; run a newer build`,
  ],
  ['the newest schema before the baseline', sql => migrate(sql, toEarlierSchema(19)), EARLIER_BUILD],
  ['the oldest schema before the baseline', sql => migrate(sql, toEarlierSchema(1)), EARLIER_BUILD],
])('exit code 2 and one line: %s', async (_, prepare, message) => {
  const { url, sql } = await createDatabaseAt(0)
  await prepare(sql)
  const [start, migration] = await Promise.all([run('main', url), run('migrate', url)])
  expect(start).toEqual({ code: 2, lines: [`schema: ${message}`] })
  expect(migration).toEqual({ code: 2, lines: [`migrate: ${message}`] })
})

test('a replica starts while VACUUM holds its lock of every table, and writes go on', async () => {
  const { url, sql } = await createDatabaseAt(newest)
  const [names] = await sql<{ tables: string }[]>`
    select string_agg(relname, ', ') as tables from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`
  const vacuum = await holdLock(sql, tx => tx.unsafe(`lock table ${names?.tables} in share update exclusive mode`))
  const api = await startApi(url)
  onTestFinished(async () => void (await api.process.kill()))
  expect((await api.call('POST', '/api/v1/pool/pool.test/reserve', { subdomain: 'acme' })).status).toBe(201)
  await vacuum.release()
})

test('the zone locks of a build with transactions, held one after the other during slow calls, do not hold up the upgrade', async () => {
  const { url, sql } = await createDatabaseAt(5)
  await sql`insert into dns_zone_locks (name) values ('pool.test')`
  let isMigrated = false
  const holders = createReplicas(url, 2).map(async replica => {
    while (!isMigrated) {
      await replica.begin(async tx => {
        await tx`select from dns_zone_locks where name = 'pool.test' for update`
        // Longer than each wait for a lock of another migration.
        await tx`select pg_sleep(0.5)`
      })
    }
  })
  await untilSessionsWait(sql, 1)
  let attempts = 0
  await migrate(sql, upTo(6), { onLocked: () => (attempts += 1), pauseFactor: 1 })
  isMigrated = true
  await Promise.all(holders)
  expect(attempts).toBe(0)
})

test('on a migrated database, the service needs no right to change the schema', async () => {
  const { url, sql } = await createDatabaseAt(newest)
  const role = `service_${new URL(url).pathname.slice(6)}`
  await sql.unsafe(`
    create role ${role} login password 'secret';
    grant usage on schema public to ${role};
    grant select, insert, update, delete on all tables in schema public to ${role};
    grant usage on all sequences in schema public to ${role}`)
  onTestFinished(async () => void (await sql.unsafe(`drop owned by ${role}; drop role ${role}`)))
  const api = await startApi(Object.assign(new URL(url), { username: role, password: 'secret' }).href)
  onTestFinished(async () => void (await api.process.kill()))
  const { body } = await api.call('POST', '/api/v1/pool/pool.test/reserve', { subdomain: 'acme' })
  const commit = { ...body, subdomain: 'acme', loadBalancerIP: '192.0.2.3', sovereignFQDN: 'acme.pool.test' }
  expect((await api.call('POST', '/api/v1/pool/pool.test/commit', commit)).status).toBe(200)
  expect((await api.call('DELETE', '/api/v1/pool/pool.test/release', { subdomain: 'acme' })).status).toBe(200)
})

test('migrate --check says what migrate would do, and migrate does it', async () => {
  const { url, sql } = await createDatabaseAt(0)
  const files = schema.migrations.map(({ version, name }) => `${String(version).padStart(4, '0')}-${name}.sql`)
  expect(await run('migrate', url, '--check')).toEqual({ code: 0, lines: files.map(file => `pending: ${file}`) })
  expect(await dumpSchema(sql)).toBe('\n')
  expect(await run('migrate', url)).toEqual({ code: 0, lines: files.map(file => `applied: ${file}`) })
  const nothing = { code: 0, lines: [`The database fits build ${newest}. No migration is pending.`] }
  expect(await run('migrate', url, '--check')).toEqual(nothing)
  expect(await run('migrate', url)).toEqual(nothing)
  expect(await run('migrate', url, '--dry-run')).toMatchObject({
    code: 2,
    lines: [expect.stringContaining('--check')],
  })
})

test('migrate against a balancer without a healthy server, which closes each connection: exit code 1 and one line', async () => {
  let connections = 0
  const balancer = createServer(socket => {
    connections += 1
    socket.on('error', () => {})
    socket.end()
  })
  await once(balancer.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void balancer.close())
  const { port } = balancer.address() as AddressInfo
  const line = expect.stringMatching(/^migrate: the database cannot be reached; .* PDM_DATABASE_URL \(\w+\)$/)
  expect(await run('migrate', `postgres://role:secret@127.0.0.1:${port}/pool`)).toEqual({ code: 1, lines: [line] })
  expect(connections).toBe(1)
})

import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { createDatabaseClient, type Sql } from '@pool/runtime/database/client'
import { migrate } from '@pool/runtime/database/migrations'
import { dumpSchema } from '@pool/test-kit/dump-schema.ts'
import { until } from '@pool/test-kit/poll.ts'
import { runUntilExit, startApi, toApiEntry } from '@pool/test-kit/services.ts'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { migrateDatabase, readSchema } from '../../src/database/schema.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { holdLock } from '../support/locks.ts'

const schema = await readSchema()
const versions = schema.migrations.map(({ version }) => version)
const newest = versions.length
const upTo = (version: number) => ({ ...schema, migrations: schema.migrations.slice(0, version) })
const toPath = (version: number, extension: 'txt' | 'sql'): string =>
  fileURLToPath(new URL(`./golden/${String(version).padStart(4, '0')}.${extension}`, import.meta.url))

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

describe('each version', () => {
  const database = createTestDatabase({ schema: false })
  afterAll(async () => (await database).drop())

  // In order, on one database.
  test.each(versions)('%i matches its golden dump', async version => {
    const { sql } = await database
    await migrate(sql, upTo(version))
    await expect(await dumpSchema(sql)).toMatchFileSnapshot(toPath(version, 'txt'))
  })

  test.each(versions)('%i is upgraded to the newest with its rows', async version => {
    const { sql } = await createDatabaseAt(version)
    await insertRows(sql, version)
    const before = await readRows(sql)
    if (version === 1) expect([...before.values()].filter(rows => rows.length === 0)).toEqual([])
    await migrateDatabase(sql)
    const after = await readRows(sql)
    for (const [table, rows] of before) {
      expect(after.get(table), table).toEqual(rows.map(row => expect.objectContaining(row)))
    }
  })

  test('1 is upgraded by the start of the service, which serves its rows', async () => {
    const { url, sql } = await createDatabaseAt(1)
    await insertRows(sql, 1)
    const api = await startApi(url, { PDM_DNS_COMMIT_WAIT: '0s' })
    onTestFinished(async () => void (await api.process.kill()))
    const { body } = await api.call('GET', '/api/v1/pool/pool.test/list')
    expect(JSON.stringify(body)).toMatch(/acme.*again.*cluster.*kept/)
    const path = '/api/v1/pool/pool.test/commit'
    const commit = {
      subdomain: 'kept',
      reservationToken: 'kept',
      loadBalancerIP: '192.0.2.3',
      sovereignFQDN: 'kept.pool.test',
    }
    expect((await api.call('POST', path, commit)).body).toMatchObject({ subdomain: 'kept' })
    expect((await api.call('GET', '/api/v1/pool/pool.test/history')).status).toBe(200)
  })
})

test('ten replicas migrate an empty database concurrently', async () => {
  const [empty, expected] = await Promise.all([createDatabaseAt(0), createTestDatabase()])
  onTestFinished(() => expected.drop())
  const replicas = Array.from({ length: 10 }, () =>
    createDatabaseClient(empty.url, { maxConnections: 1, applicationName: 'replica' }),
  )
  await Promise.all(replicas.map(replica => migrateDatabase(replica)))
  expect(await dumpSchema(empty.sql)).toBe(await dumpSchema(expected.sql))
  await Promise.all(replicas.map(replica => replica.end()))
})

/** Runs a command of the service until it exits. */
const run = (command: 'main' | 'migrate', url: string, ...args: string[]) =>
  runUntilExit({
    entry: toApiEntry(command),
    args,
    env: { PORT: '0', PDM_OPERATOR_PORT: '0', PDM_DATABASE_URL: url, PDM_LOG_LEVEL: 'warn' },
  })

/** Records a migration that no build contains yet. */
const recordNewer = (sql: Sql, oldestBuild: number) => sql`
  insert into ${sql(schema.versionTable)} (version, name, oldest_build) values (${newest + 1}, 'newer', ${oldestBuild})`

describe('a database that the service cannot run on ends the start with exit code 2 and one line', () => {
  test('tables without a version', async () => {
    const { url, sql } = await createDatabaseAt(0)
    await sql.unsafe('create table pool_allocations (id integer); create table invoices (id integer)')
    const message =
      'the database has tables without a version (pool_allocations, but no allocation_api_migrations): ' +
      'they are from a build without versions or of another program; use an empty database'
    expect(await run('main', url)).toEqual({ code: 2, lines: [`schema: ${message}`] })
    expect(await run('migrate', url)).toEqual({ code: 2, lines: [`migrate: ${message}`] })
  })

  test('a schema that requires a newer build', async () => {
    const { url, sql } = await createDatabaseAt(newest)
    await recordNewer(sql, newest + 1)
    const { code, lines } = await run('main', url)
    expect([code, lines]).toEqual([2, [expect.stringContaining(`requires build ${newest + 1} or newer`)]])
  })
})

test('a replica serves on a newer schema that allows its build, and is not ready on one that does not', async () => {
  const { url, sql } = await createDatabaseAt(newest)
  await recordNewer(sql, newest)
  const api = await startApi(url)
  onTestFinished(async () => void (await api.process.kill()))
  const getReadiness = async () => (await api.call('GET', '/readyz')).status
  expect(await getReadiness()).toBe(200)
  await sql`update ${sql(schema.versionTable)} set oldest_build = ${newest + 1} where version = ${newest + 1}`
  await until('the replica is not ready', async () => (await getReadiness()) === 503)
  expect(api.lines.filter(line => line.includes(`requires build ${newest + 1} or newer`))).toHaveLength(1)
  await sql`update ${sql(schema.versionTable)} set oldest_build = ${newest} where version = ${newest + 1}`
  await until('the replica is ready', async () => (await getReadiness()) === 200)
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

import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { until } from '@pool/test-kit/poll.ts'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { createDatabaseClient, type Sql } from './client.ts'
import {
  listPendingMigrations,
  type Migration,
  migrate,
  readMigrations,
  type Schema,
  SchemaVersionError,
} from './migrations.ts'

const read = async (files: Record<string, string>) => {
  const folder = await mkdtemp(join(tmpdir(), 'migrations-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
  return readMigrations(pathToFileURL(`${folder}/`))
}
const oldest = (build: number | string): string => `-- Oldest build: ${build}\nselect 1;\n`

test('reads the files in order and ignores other files', async () => {
  const files = { '0002-second-step.sql': oldest(2), '0001-first.sql': oldest(1), 'README.md': '' }
  expect(await read(files)).toEqual([
    { version: 1, name: 'first', oldestBuild: 1, script: oldest(1) },
    { version: 2, name: 'second-step', oldestBuild: 2, script: oldest(2) },
  ])
})

test.each<[what: string, files: Record<string, string>, message: string]>([
  ['a gap', { '0001-a.sql': oldest(1), '0003-c.sql': oldest(1) }, '0003-c.sql: rename it to 0002-'],
  ['a number twice', { '0001-a.sql': oldest(1), '0001-b.sql': oldest(1) }, '0001-b.sql: rename it to 0002-'],
  ['no number', { 'first.sql': oldest(1) }, 'first.sql: rename it to 0001-'],
  ['a quote in the name', { "0001-it's.sql": oldest(1) }, 'rename it to 0001-'],
  ['no oldest build', { '0001-a.sql': 'select 1;' }, '0001-a.sql: add a line "-- Oldest build: N" with N from 1 to 1'],
  ['an oldest build that does not exist yet', { '0001-a.sql': oldest(2) }, 'N from 1 to 1'],
  [
    'an older build than the file before allows',
    { '0001-a.sql': oldest(1), '0002-b.sql': oldest(2), '0003-c.sql': oldest(1) },
    '0003-c.sql: add a line "-- Oldest build: N" with N from 2 to 3',
  ],
])('rejects %s', async (_, files, message) => {
  await expect(read(files)).rejects.toThrow(message)
})

const step = (version: number, script: string, oldestBuild = 1): Migration => ({
  version,
  name: `step-${version}`,
  oldestBuild,
  script,
})
const [first, second, third] = [
  step(1, 'create table things (id integer primary key);'),
  step(2, 'alter table things add column name text;'),
  step(3, 'create table others (id integer);'),
] as const
const schemaOf = (...migrations: Migration[]): Schema => ({
  versionTable: 'test_migrations',
  otherSchemaAdvice: 'use an empty database',
  migrations,
})
const all = schemaOf(first, second, third)

let url: string
let sql: Sql

const connect = (): Sql => {
  const client = createDatabaseClient(url, { maxConnections: 1, applicationName: 'tests' })
  onTestFinished(() => client.end({ timeout: 1 }))
  return client
}

beforeEach(async () => {
  // A schema is faster to create than a database.
  const name = `migrations_${randomBytes(6).toString('hex')}`
  url = `${process.env.PDM_TEST_DSN}?search_path=${name},other_${name}`
  sql = connect()
  await sql.unsafe(`create schema ${name}; create schema other_${name}`)
  onTestFinished(async () => void (await sql.unsafe(`drop schema ${name}, other_${name} cascade`)))
})

const listApplied = () => sql`select version, name, oldest_build from test_migrations order by version`

/** Holds what `lock` locks until `release`. */
const hold = async (lock: string) => {
  const client = connect()
  await client.unsafe(`begin; ${lock}`).simple()
  return { release: () => client.unsafe('rollback').simple() }
}

describe('migrate', () => {
  test('applies the pending migrations in order and records them', async () => {
    await migrate(sql, schemaOf(first))
    const applied: number[] = []
    await migrate(sql, all, { onApplied: ({ version }) => applied.push(version) })
    expect(applied).toEqual([2, 3])
    expect([...(await listApplied())]).toEqual([
      { version: 1, name: 'step-1', oldest_build: 1 },
      { version: 2, name: 'step-2', oldest_build: 1 },
      { version: 3, name: 'step-3', oldest_build: 1 },
    ])
  })

  test('a migration that fails leaves nothing of itself and all before it', async () => {
    const broken = step(3, 'create table others (id integer); select 1/0; create table more (id integer);')
    await expect(migrate(sql, schemaOf(first, second, broken))).rejects.toEqual(
      new SchemaVersionError(
        'migration 3 ("step-3") failed and was rolled back (22012): the log of the database has the statement; run the previous build, and report it',
      ),
    )
    expect(await listApplied()).toHaveLength(2)
    expect(await sql`select to_regclass('others') as others`).toEqual([{ others: null }])
    await migrate(sql, all)
    expect(await listApplied()).toHaveLength(3)
  })

  test('with the newest version it takes no lock except a read lock of the version table', async () => {
    await migrate(sql, all)
    const held = await hold(`
      lock table things, others in access exclusive mode; lock table test_migrations in exclusive mode;
      select pg_advisory_xact_lock(hashtextextended('test_migrations', 0));`)
    await migrate(sql, all)
    const reader = connect()
    await reader`set default_transaction_read_only = on`
    await migrate(reader, all)
    await held.release()
  })

  test('behind the lock of a VACUUM it lets writes pass, and goes on when the lock is free', async () => {
    await migrate(sql, schemaOf(first))
    const held = await hold('lock table things in share update exclusive mode;')
    let attempts = 0
    const migrated = migrate(connect(), all, { pauseFactor: 2, onLocked: () => (attempts += 1) })
    const writer = connect()
    for (let id = 0; attempts < 3; id += 1) {
      await writer`insert into things (id) values (${id})`
    }
    expect(await listApplied()).toHaveLength(1)
    await held.release()
    await migrated
    expect(await listApplied()).toHaveLength(3)
  })

  test('a connection that is lost during a migration leaves nothing of it', async () => {
    const slow = step(1, 'create table things (id integer); select pg_sleep(60);')
    const broken = migrate(connect(), schemaOf(slow)).catch(error => error)
    await until('the migration runs', async () => {
      const ended = await sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where query like '%create table things%' and wait_event = 'PgSleep'`
      return ended.length > 0
    })
    expect(await broken).toBeInstanceOf(Error)
    await migrate(sql, all)
    expect(await listApplied()).toHaveLength(3)
  })

  // The first one commits while the others look for tables without a version.
  test('replicas that start on an empty database concurrently all migrate it, in 60 rounds', async () => {
    const replicas = Array.from({ length: 8 }, connect)
    for (let round = 0; round < 60; round += 1) {
      await Promise.all(replicas.map(replica => migrate(replica, all)))
      await sql.unsafe('drop table test_migrations, things, others')
    }
  })

  test('replicas of two builds migrate concurrently', async () => {
    const builds = [1, 2, 3, 3, 2, 1, 3, 3].map(build => schemaOf(...all.migrations.slice(0, build)))
    await Promise.all(builds.map(build => migrate(connect(), build)))
    expect(await listApplied()).toHaveLength(3)
  })
})

test('a column changes over two releases, while the builds before and after each release write', async () => {
  const initial = step(1, 'create table names (id integer primary key, created_by text not null);')
  // As in the README of the migrations of the allocation API.
  const expand = step(
    2,
    `alter table names add column creator text;
    create function copy_creator() returns trigger language plpgsql as $$
    begin
      if tg_op = 'INSERT' then
        new.creator := coalesce(new.creator, new.created_by);
        new.created_by := new.creator;
      elsif new.creator is distinct from old.creator then
        new.created_by := new.creator;
      else
        new.creator := new.created_by;
      end if;
      return new;
    end
    $$;
    create trigger copy_creator before insert or update on names for each row execute function copy_creator();`,
  )
  const contract = step(
    3,
    'drop trigger copy_creator on names; drop function copy_creator; alter table names drop column created_by;',
    2,
  )
  await migrate(sql, schemaOf(initial))
  await sql`insert into names (id, created_by) values (1, 'a'), (2, 'a')`
  await migrate(sql, schemaOf(initial, expand))
  // The build before writes, then the build after.
  await sql`insert into names (id, created_by) values (3, 'b')`
  await sql`update names set created_by = 'c' where id = 1`
  await sql`insert into names (id, creator) values (4, 'd')`
  await sql`update names set creator = 'e' where id = 3`
  const listCreators = async (column: string) =>
    (await sql.unsafe<{ creator: string }[]>(`select ${column} as creator from names order by id`)).map(
      row => row.creator,
    )
  expect(await listCreators('created_by')).toEqual(['c', 'a', 'e', 'd'])
  expect(await listCreators('coalesce(creator, created_by)')).toEqual(['c', 'a', 'e', 'd'])
  await sql`update names set creator = created_by where creator is null`
  await migrate(sql, schemaOf(initial, expand, contract))
  expect(await listCreators('creator')).toEqual(['c', 'a', 'e', 'd'])
  await expect(listPendingMigrations(sql, schemaOf(initial))).rejects.toThrow(SchemaVersionError)
  expect(await listPendingMigrations(sql, schemaOf(initial, expand))).toEqual([])
})

describe('listPendingMigrations', () => {
  const list = async (schema: Schema) => (await listPendingMigrations(sql, schema)).map(({ version }) => version)

  test('lists every migration for an empty database, and changes nothing', async () => {
    expect(await list(all)).toEqual([1, 2, 3])
    expect(await sql`select to_regclass('test_migrations') as versions`).toEqual([{ versions: null }])
  })

  test('lists nothing if a newer schema allows this build', async () => {
    await migrate(sql, all)
    expect(await list(schemaOf(first))).toEqual([])
  })

  test('rejects if a newer schema requires a newer build', async () => {
    await migrate(sql, schemaOf(first, step(2, 'alter table things add column name text;', 2), step(3, 'select 1;', 2)))
    await expect(list(schemaOf(first))).rejects.toThrow(
      new SchemaVersionError(
        'version 3 of the schema requires build 2 or newer, and this is build 1; run a newer build',
      ),
    )
    expect(await list(schemaOf(first, second))).toEqual([])
  })

  test.each([
    ['newer than', 3],
    ['as new as', 2],
    ['older than', 1],
  ])('rejects another sequence of migrations, %s its own, before its version is read', async (_, count) => {
    const others = [first, second, third].map(migration => ({ ...migration, name: 'other', oldestBuild: 1 }))
    others[2] = step(3, 'select 1;', 3)
    await migrate(sql, schemaOf(...others.slice(0, count)))
    await expect(list(schemaOf(first, second))).rejects.toThrow(
      new SchemaVersionError(
        'migration 1 of the database is "other", which this build does not contain; use an empty database',
      ),
    )
  })

  test('rejects tables of the service without a version, and changes nothing', async () => {
    await sql.unsafe('create table things (id integer)')
    await expect(migrate(sql, all)).rejects.toThrow('tables without a version (things, but no test_migrations)')
    expect(await sql`select to_regclass('test_migrations') as versions`).toEqual([{ versions: null }])
  })

  test('ignores tables of other programs, also in another schema of the search path', async () => {
    await sql.unsafe(`
      create table other_migrations (version integer, name text, oldest_build integer);
      insert into other_migrations values (9, 'other', 9);
      create table invoices (id integer)`)
    const [other] = await sql<{ name: string }[]>`select (current_schemas(false))[2] as name`
    await sql`create table ${sql(other?.name ?? '')}.things (id integer)`
    await migrate(sql, all)
    expect(await listApplied()).toHaveLength(3)
  })
})

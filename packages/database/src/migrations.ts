import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import postgres from 'postgres'
import type { Sql } from './client.ts'

/** One step of a schema. A build is identified by the version of its newest migration. */
export interface Migration {
  readonly version: number
  readonly name: string
  /** The oldest build that can run on the result. */
  readonly oldestBuild: number
  readonly script: string
}

export interface Schema {
  /** The table that records the applied migrations. It belongs to one service and is inserted into SQL as it is. */
  readonly versionTable: string
  /** In order, without a gap. */
  readonly migrations: readonly Migration[]
}

export interface MigrateOptions {
  readonly onApplied?: (migration: Migration) => void
  /** Another transaction holds a lock that the migration needs. It is tried again after a pause. */
  readonly onWait?: (migration: Migration) => void
  readonly pauseMs?: number
}

/** This build cannot use the database. The message says why, then what to do. */
export class SchemaVersionError extends Error {
  override readonly name = 'SchemaVersionError'
}

/** While a migration waits for a lock of a table, every write to that table waits behind it. */
const LOCK_TIMEOUT_MS = 100
/** The share of the time in which writes can wait for a migration stays below 1 %. */
const RETRY_PAUSE_MS = 15_000
const FILE_NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/
const OLDEST_BUILD = /^-- Oldest build: (\d+)$/m

/** Reads the SQL files of a folder. An error of the files is an error of the build. */
export const readMigrations = async (folder: URL): Promise<Migration[]> => {
  const files = (await readdir(folder)).filter(file => file.endsWith('.sql')).sort()
  const migrations: Migration[] = []
  for (const [index, file] of files.entries()) {
    const script = await readFile(new URL(file, folder), 'utf8')
    const [, version, name] = FILE_NAME.exec(file) ?? []
    const oldestBuild = Number(OLDEST_BUILD.exec(script)?.[1])
    if (!name || Number(version) !== index + 1)
      throw new Error(`${file}: expected a name that begins with ${index + 1}`)
    if (!(oldestBuild >= (migrations.at(-1)?.oldestBuild ?? 1) && oldestBuild <= index + 1)) {
      throw new Error(`${file}: expected a line "-- Oldest build: N", at least that of the file before`)
    }
    migrations.push({ version: index + 1, name, oldestBuild, script })
  }
  return migrations
}

const hasCode = (error: unknown, ...codes: string[]): error is postgres.PostgresError =>
  error instanceof postgres.PostgresError && codes.includes(error.code)

/**
 * The migrations that the database lacks. Reads the version table only; if there is none, also the catalog. Rejects with a
 * `SchemaVersionError` if the schema requires a newer build, has another history, or has tables but no version.
 */
export const listPendingMigrations = async (sql: Sql, { versionTable, migrations }: Schema): Promise<Migration[]> => {
  const applied = await sql
    .unsafe<{ version: number; name: string; oldest_build: number }[]>(
      `select version, name, oldest_build from ${versionTable} order by version`,
    )
    .catch(error => (hasCode(error, '42P01') ? [] : Promise.reject(error)))
  const newest = applied.at(-1)
  if (!newest) {
    const tables = migrations.flatMap(({ script }) => Array.from(script.matchAll(/^create table (\w+)/gm), m => m[1]))
    // `to_regclass` sees a version table that another replica has just created with the tables.
    const existing = await sql.unsafe<{ relname: string }[]>(`
      select relname from pg_class
      where to_regclass('${versionTable}') is null and relnamespace = current_schema()::regnamespace
        and relname in (${tables.map(table => `'${table}'`).join()})
      order by relname limit 3`)
    if (existing.length === 0) return [...migrations]
    throw new SchemaVersionError(
      `the database has tables of this name (${existing.map(row => row.relname).join(', ')}) but no table ${versionTable}: ` +
        'they are from a build before versioned schemas, or of another program; use an empty database or schema',
    )
  }
  const other = applied.find(({ version, name }) => (migrations[version - 1]?.name ?? name) !== name)
  if (other) {
    throw new SchemaVersionError(
      `migration ${other.version} of the database is ${other.name}, that of this build is ` +
        `${migrations[other.version - 1]?.name}; use the build that created the database, or an empty database`,
    )
  }
  if (newest.oldest_build > migrations.length) {
    throw new SchemaVersionError(
      `the database has schema version ${newest.version}, which requires build ${newest.oldest_build} or newer, ` +
        `and this is build ${migrations.length}; start a newer build`,
    )
  }
  return migrations.slice(newest.version)
}

/**
 * Applies the pending migrations, each in a transaction of its own, and waits as long as other transactions prevent it. An
 * advisory lock serializes replicas. It executes nothing if no migration is pending.
 */
export const migrate = async (sql: Sql, schema: Schema, options: MigrateOptions = {}): Promise<void> => {
  const { versionTable } = schema
  for (;;) {
    const [next] = await listPendingMigrations(sql, schema)
    if (!next) return
    const { version, name, oldestBuild, script } = next
    try {
      // A message with several statements is one transaction (Postgres manual, message flow: simple query).
      await sql
        .unsafe(`
          set local statement_timeout = 0; set local lock_timeout = '30s';
          select pg_advisory_xact_lock(hashtextextended('${versionTable}', 0));
          set local lock_timeout = '${LOCK_TIMEOUT_MS}ms';
          create table if not exists ${versionTable} (
            version integer primary key, name text not null, oldest_build integer not null,
            applied_at timestamptz not null default now());
          insert into ${versionTable} (version, name, oldest_build) values (${version}, '${name}', ${oldestBuild});
          ${script}`)
        .simple()
      options.onApplied?.(next)
    } catch (error) {
      // Another replica has applied it.
      if (hasCode(error, '23505') && error.table_name === versionTable) continue
      if (!hasCode(error, '55P03', '40P01')) throw error
      options.onWait?.(next)
      await sleep(options.pauseMs ?? RETRY_PAUSE_MS)
    }
  }
}

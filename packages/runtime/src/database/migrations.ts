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

const FILE_NAME = /^(\d{4})-([a-z0-9-]+)\.sql$/
const OLDEST_BUILD = /^-- Oldest build: (\d+)$/m

/**
 * Reads the SQL files of a folder: `0001-<name>.sql` and so on without a gap, each with a line `-- Oldest build: N`. Rejects
 * if a file breaks these rules.
 */
export const readMigrations = async (folder: URL): Promise<Migration[]> => {
  const files = (await readdir(folder)).filter(file => file.endsWith('.sql')).sort()
  const migrations: Migration[] = []
  for (const [index, file] of files.entries()) {
    const version = index + 1
    const script = await readFile(new URL(file, folder), 'utf8')
    const [, digits, name] = FILE_NAME.exec(file) ?? []
    if (!name || Number(digits) !== version) {
      throw new Error(`${file}: rename it to ${String(version).padStart(4, '0')}-<name>.sql, with a-z, 0-9 and "-"`)
    }
    const oldestBuild = Number(OLDEST_BUILD.exec(script)?.[1])
    const least = migrations.at(-1)?.oldestBuild ?? 1
    if (!(oldestBuild >= least && oldestBuild <= version)) {
      throw new Error(`${file}: add a line "-- Oldest build: N" with N from ${least} to ${version}`)
    }
    migrations.push({ version, name, oldestBuild, script })
  }
  return migrations
}

export interface Schema {
  /** The table that records the applied migrations. It belongs to one service. It is inserted into SQL as it is. */
  readonly versionTable: string
  /** What an operator does about a database that other migrations created. */
  readonly otherSchemaAdvice: string
  readonly migrations: readonly Migration[]
}

export interface MigrateOptions {
  readonly onApplied?: (migration: Migration) => void
  /** Another transaction holds a lock that the migration needs. The next attempt follows after a pause. */
  readonly onLocked?: (migration: Migration) => void
  /** The pause as a multiple of the time that the attempt waited for the lock. */
  readonly pauseFactor?: number
}

/** This build cannot run on the database. The message says why, then what to do. */
export class SchemaVersionError extends Error {
  override readonly name = 'SchemaVersionError'
}

/** While a migration waits for a lock of a table, every write to the table waits behind it. Each attempt waits longer. */
const MIN_LOCK_TIMEOUT_MS = 50
const MAX_LOCK_TIMEOUT_MS = 400
/** Writes wait for a quarter of a percent of the time, and each wait delays those that queue behind it. */
const PAUSE_FACTOR = 400

const hasCode = (error: unknown, ...codes: string[]): error is postgres.PostgresError =>
  error instanceof postgres.PostgresError && codes.includes(error.code)

/**
 * The statements do not fit the tables (classes 22, 23 and 42), which a repetition does not change. A missing privilege has an
 * explanation of its own.
 */
const isMisfit = (error: unknown): error is postgres.PostgresError =>
  error instanceof postgres.PostgresError && /^(?:22|23|42)/.test(error.code) && error.code !== '42501'

const rejectUnversioned = async (sql: Sql, { versionTable, migrations }: Schema): Promise<void> => {
  const created = migrations.flatMap(({ script }) => Array.from(script.matchAll(/^create table (\w+)/gm), m => m[1]))
  // All of it in one snapshot: another replica can create the version table and the first tables meanwhile. `to_regclass` uses a
  // cache of the session, which can be older than the snapshot.
  const tables = await sql.unsafe<{ name: string }[]>(`
    select relname as name from pg_class
    where relnamespace = current_schema()::regnamespace and relname in (${created.map(table => `'${table}'`).join()})
      and not exists (
        select from pg_class where relnamespace = current_schema()::regnamespace and relname = '${versionTable}')
    order by 1 limit 3`)
  const found = `the database has tables without a version (${tables.map(({ name }) => name).join(', ')}, but no ${versionTable})`
  const advice = 'they are from a build without versions or of another program; use an empty database'
  if (tables.length > 0) throw new SchemaVersionError(`${found}: ${advice}`)
}

/**
 * The migrations that the database lacks. Only reads. Rejects with a `SchemaVersionError` if the schema requires a newer build,
 * if other migrations created it, or if it has tables but no version.
 */
export const listPendingMigrations = async (sql: Sql, schema: Schema): Promise<Migration[]> => {
  const { versionTable, otherSchemaAdvice, migrations } = schema
  const applied = await sql
    .unsafe<{ version: number; name: string; oldest_build: number }[]>(
      `select version, name, oldest_build from ${versionTable} order by version`,
    )
    .catch(error => (hasCode(error, '42P01') ? [] : Promise.reject(error)))
  // First, because the version of another sequence of migrations says nothing about this build.
  const other = applied.find(({ version, name }) => (migrations[version - 1]?.name ?? name) !== name)
  if (other) {
    const difference = `migration ${other.version} of the database is "${other.name}", which this build does not contain`
    throw new SchemaVersionError(`${difference}; ${otherSchemaAdvice}`)
  }
  const newest = applied.at(-1)
  if (!newest) await rejectUnversioned(sql, schema)
  else if (newest.oldest_build > migrations.length) {
    const required = `version ${newest.version} of the schema requires build ${newest.oldest_build} or newer`
    throw new SchemaVersionError(`${required}, and this is build ${migrations.length}; run a newer build`)
  }
  return migrations.slice(newest?.version ?? 0)
}

/**
 * Applies the pending migrations, each in one transaction, and waits as long as other transactions prevent that. An advisory
 * lock serializes replicas. If no migration is pending, it reads the version and does nothing else.
 */
export const migrate = async (sql: Sql, schema: Schema, options: MigrateOptions = {}): Promise<void> => {
  const { versionTable } = schema
  for (let lockTimeoutMs = MIN_LOCK_TIMEOUT_MS; ; ) {
    const [next] = await listPendingMigrations(sql, schema)
    if (!next) return
    const { version, name, oldestBuild, script } = next
    // A message with several statements is one transaction (Postgres manual, message flow: simple query).
    const statements = `
      set local statement_timeout = 0; set local lock_timeout = '30s';
      select pg_advisory_xact_lock(hashtextextended('${versionTable}', 0));
      set local lock_timeout = '${lockTimeoutMs}ms';
      create table if not exists ${versionTable} (version integer primary key, name text not null,
        oldest_build integer not null, applied_at timestamptz not null default now());
      insert into ${versionTable} (version, name, oldest_build) values (${version}, '${name}', ${oldestBuild});
      ${script}`
    try {
      await sql.unsafe(statements).simple()
      options.onApplied?.(next)
    } catch (error) {
      // Another replica has applied it.
      if (hasCode(error, '23505') && error.table_name === versionTable) continue
      if (isMisfit(error)) {
        const failure = `migration ${version} ("${name}") failed and was rolled back (${error.code})`
        const advice = 'the log of the database has the statement; run the previous build, and report it'
        throw new SchemaVersionError(`${failure}: ${advice}`)
      }
      if (!hasCode(error, '55P03', '40P01')) throw error
      options.onLocked?.(next)
      await sleep(lockTimeoutMs * (options.pauseFactor ?? PAUSE_FACTOR))
      lockTimeoutMs = Math.min(2 * lockTimeoutMs, MAX_LOCK_TIMEOUT_MS)
    }
  }
}

/**
 * Whether a running build still fits the database: another build can migrate it, and an operator can restore an older one.
 * `onChange` gets the reason why it no longer fits, or null once it fits again.
 */
export const createSchemaCheck = (sql: Sql, schema: Schema, onChange: (misfit: string | null) => void) => {
  let misfit: string | null = null
  const findMisfit = async (): Promise<string | null> => {
    try {
      const [pending] = await listPendingMigrations(sql, schema)
      return pending ? `the database lacks migration ${pending.version}; restart this process to apply it` : null
    } catch (error) {
      if (error instanceof SchemaVersionError) return error.message
      throw error
    }
  }
  return {
    /** As of the last successful `refresh`. */
    fits: (): boolean => misfit === null,
    async refresh(): Promise<void> {
      const latest = await findMisfit()
      if (latest === misfit) return
      misfit = latest
      onChange(misfit)
    },
  }
}

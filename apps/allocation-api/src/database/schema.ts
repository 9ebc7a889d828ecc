import type { Sql } from '@pool/runtime/database/client'
import { type MigrateOptions, migrate, readMigrations, type Schema } from '@pool/runtime/database/migrations'

const MIGRATIONS_FOLDER = new URL('./migrations/', import.meta.url)

/** The migrations that 0001 replaced. */
const MIGRATIONS_BEFORE_BASELINE = 19

/** The schema of this build. */
export const readSchema = async (): Promise<Schema> => ({
  versionTable: 'allocation_api_migrations',
  otherSchemaAdvice:
    'export it with the build that created it (poolctl export), then import it into an empty database with this build (poolctl import)',
  migrations: await readMigrations(MIGRATIONS_FOLDER),
})

/** Brings the database to the schema of this build, or leaves a newer schema that this build can run on. */
export const migrateDatabase = async (sql: Sql, options?: MigrateOptions): Promise<void> =>
  migrate(sql, await readSchema(), options)

/** The number of the schema in exports. It continues that of the builds before the baseline, whose exports are older. */
export const toExportVersion = ({ migrations }: Schema): number => MIGRATIONS_BEFORE_BASELINE + migrations.length

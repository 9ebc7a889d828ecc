import type { Sql } from '@pool/runtime/database/client'
import { readMigrations } from '@pool/runtime/database/migration-files'
import { type MigrateOptions, migrate, type Schema } from '@pool/runtime/database/migrations'

const MIGRATIONS_FOLDER = new URL('./migrations/', import.meta.url)

/** The schema of this build. */
export const readSchema = async (): Promise<Schema> => ({
  versionTable: 'allocation_api_migrations',
  migrations: await readMigrations(MIGRATIONS_FOLDER),
})

/** Brings the database to the schema of this build, or leaves a newer schema that this build can run on. */
export const migrateDatabase = async (sql: Sql, options?: MigrateOptions): Promise<void> =>
  migrate(sql, await readSchema(), options)

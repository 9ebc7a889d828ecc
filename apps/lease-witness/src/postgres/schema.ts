import { readMigrations, type Schema } from '@pool/runtime/database/migrations'

const MIGRATIONS_FOLDER = new URL('./migrations/', import.meta.url)

/** The schema of this build. */
export const readSchema = async (): Promise<Schema> => ({
  versionTable: 'lease_witness_migrations',
  otherSchemaAdvice: 'run the build that created the database, or use an empty one',
  migrations: await readMigrations(MIGRATIONS_FOLDER),
})

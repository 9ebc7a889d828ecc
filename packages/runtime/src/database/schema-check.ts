import type { Sql } from './client.ts'
import { listPendingMigrations, type Schema, SchemaVersionError } from './migrations.ts'

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

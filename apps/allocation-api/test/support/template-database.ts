import { createTestDatabase } from './database.ts'

/**
 * Global setup of vitest: a database with the schema, in PDM_TEST_TEMPLATE. Postgres copies it in less time than it applies
 * the schema.
 */
export const setup = async (): Promise<() => Promise<void>> => {
  const template = await createTestDatabase({ connections: 1 })
  // Postgres copies a database only while no session uses it.
  await template.sql.end()
  process.env.PDM_TEST_TEMPLATE = new URL(template.url).pathname.slice(1)
  return () => template.drop()
}

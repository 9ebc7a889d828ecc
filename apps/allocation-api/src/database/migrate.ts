import { readFile } from 'node:fs/promises'
import type { Sql } from '@pool/database/client'

const SCHEMA_FILE = new URL('./schema.sql', import.meta.url)

/** The key of the advisory lock that a replica holds while it applies the schema. The number has no meaning. */
const SCHEMA_LOCK_KEY = 7_210_453_001

/**
 * Creates the objects of the schema that do not exist. An advisory lock serializes replicas that start concurrently, because
 * concurrent `create … if not exists` statements can fail with a unique violation in the catalog. Each paragraph of the
 * script is its own transaction: even an index that exists locks its table until the end of the transaction, and a
 * transaction that locks several tables could deadlock with the writes of running replicas.
 */
export const applySchema = async (sql: Sql): Promise<void> => {
  const paragraphs = (await readFile(SCHEMA_FILE, 'utf8')).split(/\n{2,}/)
  for (const statements of paragraphs) {
    // A message with several statements is one transaction (Postgres manual, message flow: simple query).
    await sql.unsafe(`select pg_advisory_xact_lock(${SCHEMA_LOCK_KEY});\n${statements}`).simple()
  }
}

import { readFile } from 'node:fs/promises'
import type { Sql } from '@pool/database/client'
import { withTimeout } from '@pool/database/with-timeout'

const script = new URL('./schema.sql', import.meta.url)

/** Any fixed number: the one that every replica takes while it applies the schema. */
const SCHEMA_LOCK = 7_210_453_001

/**
 * Creates what is missing. Replicas that start together take turns: `create … if not exists` alone can fail with a
 * unique violation in the catalog when two sessions run it at once. Each paragraph of the script is a transaction of its own, with
 * which its turn ends: an index that is there already still costs a lock on its table until then, and whoever held those of
 * several tables would deadlock with the writers of the replicas that are serving.
 */
export const applySchema = async (sql: Sql): Promise<void> => {
  const paragraphs = (await readFile(script, 'utf8')).split(/\n{2,}/)
  for (const statements of paragraphs) {
    // Several statements in one message are one transaction (Postgres manual, message flow: simple query).
    await sql.unsafe(`select pg_advisory_xact_lock(${SCHEMA_LOCK});\n${statements}`).simple()
  }
}

/**
 * Whether the database answers within `timeoutMs`. Callers that ask at the same time share one question, so that a
 * database that hangs is not asked more and more.
 */
export const createProbe = (sql: Sql, timeoutMs: number): (() => Promise<boolean>) => {
  let asked: Promise<boolean> | null = null
  const ask = async () => {
    try {
      await withTimeout(sql`select 1`, timeoutMs)
      return true
    } catch {
      return false
    } finally {
      asked = null
    }
  }
  return () => {
    asked ??= ask()
    return asked
  }
}

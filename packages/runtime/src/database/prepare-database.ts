import type { DatabaseClientOptions, Sql } from './client.ts'
import { type MigrateOptions, migrate, type Schema } from './migrations.ts'
import { checkPreparedStatements } from './prepared-statements.ts'
import { applySessionSettings, createSessionSettings, setSessionParameters, toAlterRole } from './session-settings.ts'

/** A migration can rewrite a table. After twice this time without an answer its connection counts as lost. */
const MAX_MIGRATION_MS = 3_600_000

export interface PrepareDatabaseOptions {
  readonly url: string
  /** Names the URL in errors. */
  readonly urlVariable: string
  /** The clients of the service; each gets the settings. */
  readonly clients: readonly Sql[]
  /** Statements that may hang are executed on this one of them. */
  readonly probe: Sql
  /** Creates another client of the service. The name says what it is for. */
  readonly openPool: (name: string, maxConnections: number, options: Partial<DatabaseClientOptions>) => Sql
  readonly applicationName: string
  /** Milliseconds for each statement, but those of migrations. */
  readonly timeoutMs: number
  readonly schema: Schema
  readonly onMigration: Pick<MigrateOptions, 'onApplied' | 'onLocked'>
}

/**
 * What a service does before its first statement: gives its sessions their settings, checks that prepared statements work
 * through a pooler, and applies the pending migrations. Returns the statement that an operator must execute because a pooler
 * does not pass the settings on; empty if there is none.
 */
export const prepareDatabase = async ({
  url,
  urlVariable,
  clients,
  probe,
  openPool,
  applicationName,
  timeoutMs,
  schema,
  onMigration,
}: PrepareDatabaseOptions): Promise<string> => {
  const applied = await applySessionSettings(url, createSessionSettings(timeoutMs), { applicationName, timeoutMs })
  for (const client of clients) setSessionParameters(client, applied.parameters)
  if (probe.options.prepare) {
    await checkPreparedStatements(probe, { open: sessions => openPool('start', 1, { sessions }), urlVariable })
  }
  const migrationSql = openPool('migration', 1, { maxStatementMs: MAX_MIGRATION_MS })
  await migrate(migrationSql, schema, onMigration).finally(() => migrationSql.end({ timeout: 1 }))
  return toAlterRole(applied)
}

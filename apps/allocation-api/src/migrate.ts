import { parseArgs } from 'node:util'
import { createDatabaseClient } from '@pool/runtime/database/client'
import { isDatabaseUnavailable } from '@pool/runtime/database/errors'
import { listPendingMigrations, migrate, SchemaVersionError } from '@pool/runtime/database/migrations'
import { explainStartupError } from '@pool/runtime/database/startup'
import { readEnvironment } from '@pool/runtime/service/read-environment'
import { EXIT_FAILURE, EXIT_INVALID_CONFIG, exitWith, exitWithConfigIssues } from '@pool/runtime/service/run-service'
import { readDatabaseUrl } from './config/config.ts'
import { readSchema } from './database/schema.ts'
import { describeError } from './observability/domain/redact.ts'
import { knownVariables } from './service-config.ts'

// Applies the pending migrations without a start of the service; with --check, lists them.

const print = (line: string): void => void process.stdout.write(`${line}\n`)
const toFileName = ({ version, name }: { version: number; name: string }): string =>
  `${String(version).padStart(4, '0')}-${name}.sql`

const readArguments = (): { check: boolean } => {
  try {
    return parseArgs({ options: { check: { type: 'boolean', default: false } } }).values
  } catch (error) {
    return exitWith(
      EXIT_INVALID_CONFIG,
      `migrate: ${error instanceof Error ? error.message : error}; the option is --check`,
    )
  }
}

const { check } = readArguments()
const parsed = readEnvironment(process.env, { known: knownVariables, secrets: ['PDM_DATABASE_URL'] }, readDatabaseUrl)
const { url, usesTls } = 'config' in parsed ? parsed.config : exitWithConfigIssues(parsed.issues)
const sql = createDatabaseClient(url, { maxConnections: 1, applicationName: 'allocation-api migrate' })
try {
  const schema = await readSchema()
  const pending = await listPendingMigrations(sql, schema)
  if (pending.length === 0) print(`The database fits build ${schema.migrations.length}. No migration is pending.`)
  else if (check) for (const migration of pending) print(`pending: ${toFileName(migration)}`)
  else {
    await migrate(sql, schema, {
      onApplied: migration => print(`applied: ${toFileName(migration)}`),
      onLocked: migration => print(`waiting: ${toFileName(migration)} needs a lock that another transaction holds`),
    })
  }
} catch (error) {
  const { name, code, message } = describeError(error)
  const explanation = isDatabaseUnavailable(error)
    ? explainStartupError(error, { usesTls, urlVariable: 'PDM_DATABASE_URL' }).text
    : null
  const line = `migrate: ${explanation ?? message ?? code ?? name}`
  exitWith(error instanceof SchemaVersionError ? EXIT_INVALID_CONFIG : EXIT_FAILURE, line)
} finally {
  await sql.end({ timeout: 1 })
}

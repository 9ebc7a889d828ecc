import { createDatabaseClient } from '@pool/database/client'
import { isDatabaseUnavailable } from '@pool/database/errors'
import { explainStartupError } from '@pool/database/startup-errors'
import { EnvReader } from '@pool/node-service/env'
import { EXIT_FAILURE, exitWith, exitWithConfigIssues } from '@pool/node-service/run-service'
import { mergeIssues, readSecretFiles } from '@pool/node-service/secret-files'
import { declareRestore } from '../postgres/epochs.ts'
import { readDatabaseUrl, URL_VARIABLE } from './config.ts'

// An operator runs it after a restore that the witness cannot detect, such as that of a disk snapshot: see docs/reference/leases.md.

const TIMEOUT_MS = 60_000

const secrets = readSecretFiles(process.env, [URL_VARIABLE])
const env = new EnvReader(secrets.env)
const { url, usesTls } = readDatabaseUrl(env)
const issues = mergeIssues(secrets.issues, env.issues)
if (issues.length > 0) exitWithConfigIssues(issues)
const sql = createDatabaseClient(url, { maxConnections: 1, applicationName: 'lease-witness declare-restore' })
try {
  const { epoch, generationBase } = await declareRestore(sql, TIMEOUT_MS)
  process.stdout.write(`Epoch ${epoch} has started. All generations have jumped: the base is ${generationBase}.\n`)
} catch (error) {
  const isMissing = error instanceof Error && 'code' in error && error.code === '42883'
  const explanation = isDatabaseUnavailable(error)
    ? explainStartupError(error, { usesTls, urlVariable: URL_VARIABLE }).text
    : isMissing
      ? 'the database has no witness schema; start the witness once, then declare the restore'
      : String(error)
  exitWith(EXIT_FAILURE, `declare-restore: ${explanation}`)
} finally {
  await sql.end({ timeout: 1 })
}

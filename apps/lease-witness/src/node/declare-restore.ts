import { createDatabaseClient } from '@pool/runtime/database/client'
import { isDatabaseUnavailable } from '@pool/runtime/database/errors'
import { explainStartupError } from '@pool/runtime/database/startup'
import { readEnvironment } from '@pool/runtime/service/read-environment'
import { EXIT_FAILURE, exitWith, exitWithConfigIssues } from '@pool/runtime/service/run-service'
import { declareRestore } from '../postgres/epochs.ts'
import { knownVariables, readDatabaseUrl, URL_VARIABLE } from './config.ts'

// An operator runs it after a restore that the witness cannot detect, such as that of a disk snapshot: see docs/reference/leases.md.

const TIMEOUT_MS = 60_000

const parsed = readEnvironment(process.env, { known: knownVariables, secrets: [URL_VARIABLE] }, readDatabaseUrl)
const { url, usesTls } = 'config' in parsed ? parsed.config : exitWithConfigIssues(parsed.issues)
const sql = createDatabaseClient(url, { maxConnections: 1, applicationName: 'lease-witness declare-restore' })
try {
  const { epoch, generationBase } = await declareRestore(sql, TIMEOUT_MS)
  process.stdout.write(`Epoch ${epoch} has started. All generations have jumped: the base is ${generationBase}.\n`)
} catch (error) {
  const isMissing = error instanceof Error && 'code' in error && error.code === '42883'
  const explanation = isMissing
    ? 'the database has no witness schema; start the witness once, then declare the restore'
    : isDatabaseUnavailable(error)
      ? explainStartupError(error, { usesTls, urlVariable: URL_VARIABLE }).text
      : String(error)
  exitWith(EXIT_FAILURE, `declare-restore: ${explanation}`)
} finally {
  await sql.end({ timeout: 1 })
}

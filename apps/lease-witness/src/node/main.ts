import { SchemaVersionError } from '@pool/runtime/database/migrations'
import { ConfigIssuesError } from '@pool/runtime/service/env'
import {
  EXIT_FAILURE,
  EXIT_INVALID_CONFIG,
  exitWith,
  exitWithConfigIssues,
  runService,
} from '@pool/runtime/service/run-service'
import { log, setLogOutput } from '../log.ts'
import { readConfig } from './config.ts'
import { createLineWriter } from './line-writer.ts'
import { startWitness } from './witness.ts'

const lines = createLineWriter(block => void process.stdout.write(block))
setLogOutput(lines.writeLine)
process.on('exit', lines.flush)
// As the console does: a reader of the log that is gone does not end the service.
process.stdout.on('error', () => {})

const parsed = readConfig(process.env)
const config = 'config' in parsed ? parsed.config : exitWithConfigIssues(parsed.issues)
const { settings } = config
for (const warning of config.warnings) log(settings, 'error', { msg: 'questionable-variable', ...warning })
process.on('unhandledRejection', error => log(settings, 'error', { msg: 'unhandled-rejection', reason: String(error) }))

const start = async () => {
  const witness = await startWitness(config).catch((error: unknown) => {
    if (error instanceof ConfigIssuesError) return exitWithConfigIssues(error.issues)
    if (error instanceof SchemaVersionError) return exitWith(EXIT_INVALID_CONFIG, `schema: ${error.message}`)
    return exitWith(EXIT_FAILURE, `start: ${error instanceof Error ? error.message : String(error)}`)
  })
  return { address: { port: witness.port }, stop: () => witness.stop() }
}
await runService(start, (msg, fields) => log(settings, 'info', { msg, ...fields }))

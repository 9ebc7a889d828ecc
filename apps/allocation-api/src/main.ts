import { SchemaVersionError } from '@pool/runtime/database/migrations'
import { ConfigIssuesError } from '@pool/runtime/service/env'
import {
  EXIT_FAILURE,
  EXIT_INVALID_CONFIG,
  exitWith,
  exitWithConfigIssues,
  runService,
} from '@pool/runtime/service/run-service'
import { useProxy } from './lib/proxy.ts'
import { describeError } from './observability/domain/redact.ts'
import { createLog, createStdout } from './observability/log.ts'
import { startService } from './service.ts'
import { readServiceConfig } from './service-config.ts'

useProxy(process.env)
if (process.argv[2] === 'doctor') {
  const { runDoctor } = await import('./doctor/doctor.ts')
  const print = (text: string): void => void process.stdout.write(text)
  process.exit(await runDoctor({ env: process.env, args: process.argv.slice(3), print }))
}

const parsed = readServiceConfig(process.env)
const config = 'config' in parsed ? parsed.config : exitWithConfigIssues(parsed.issues)
const destination = createStdout(flush => process.on('exit', flush))
const log = createLog(config.logLevel, { destination, now: Date.now })
process.on('unhandledRejection', error => log.error({ error: describeError(error) }, 'unhandled rejection'))

const start = () =>
  startService(config, log, process.version).catch((error: unknown) => {
    if (error instanceof ConfigIssuesError) return exitWithConfigIssues(error.issues)
    if (error instanceof SchemaVersionError) return exitWith(EXIT_INVALID_CONFIG, `schema: ${error.message}`)
    const { name, code, message } = describeError(error)
    return exitWith(EXIT_FAILURE, `start: ${message ?? code ?? name}`)
  })
await runService(start, (step, fields) => log.info(fields, step))

import { SchemaVersionError } from '@pool/database/migrations'
import { endProcess } from '@pool/node-service/end-process'
import { type ConfigIssue, ConfigIssuesError } from '@pool/node-service/env'
import { describeError } from './observability/domain/redact.ts'
import { createLog } from './observability/log.ts'
import { readServiceConfig, type Service, startService } from './service.ts'

/** A stop is promised within 20 s. */
const STOP_TIMEOUT_MS = 19_000

/** 0: stopped gracefully. */
const EXIT_FAILURE = 1
const EXIT_INVALID_CONFIG = 2

const exitWith = (code: number, line: string): never => {
  process.stderr.write(`${line}\n`)
  process.exit(code)
}

const exitWithConfigIssues = (issues: readonly ConfigIssue[]): never => {
  const list = issues.map(({ variable, detail }) => `${variable} ${detail}`).join('; ')
  return exitWith(EXIT_INVALID_CONFIG, `configuration: ${list}`)
}

const parsed = readServiceConfig(process.env)
const config = 'config' in parsed ? parsed.config : exitWithConfigIssues(parsed.issues)
const log = createLog(config.logLevel)
process.on('unhandledRejection', error => log.error({ error: describeError(error) }, 'unhandled rejection'))

const signals = ['SIGTERM', 'SIGINT'] as const
/** Until the start is complete, no request has an effect, so none is waited for. */
const abandonStart = (): void => {
  log.info('stopped while starting')
  process.exit(0)
}
for (const signal of signals) process.once(signal, abandonStart)
// A parent that spawned this process with an IPC channel and died can no longer send a signal.
if (process.channel) process.once('disconnect', abandonStart)

const service: Service = await startService(config, log, process.version).catch((error: unknown) => {
  if (error instanceof ConfigIssuesError) return exitWithConfigIssues(error.issues)
  if (error instanceof SchemaVersionError) return exitWith(EXIT_INVALID_CONFIG, `schema: ${error.message}`)
  const { name, code, message } = describeError(error)
  return exitWith(EXIT_FAILURE, `start: ${message ?? code ?? name}`)
})

let isStopping = false
const stop = (reason: string): void => {
  if (isStopping) return
  isStopping = true
  log.info({ reason }, 'stopping')
  void endProcess(process, STOP_TIMEOUT_MS, async () => {
    await service.stop()
    log.info('stopped')
  })
}
for (const signal of signals) {
  process.removeListener(signal, abandonStart)
  process.on(signal, () => stop(signal))
}
process.removeListener('disconnect', abandonStart)
if (process.channel) process.on('disconnect', () => stop('parent gone'))

// Last, because a parent may send a signal as soon as it reads this line.
log.info(service.address, 'ready')

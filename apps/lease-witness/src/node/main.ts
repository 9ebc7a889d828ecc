import { SchemaVersionError } from '@pool/database/migrations'
import { endProcess } from '@pool/node-service/end-process'
import { type ConfigIssue, ConfigIssuesError } from '@pool/node-service/env'
import { log } from '../log.ts'
import { readConfig } from './config.ts'
import { startWitness, type Witness } from './witness.ts'

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

const parsed = readConfig(process.env)
const config = 'config' in parsed ? parsed.config : exitWithConfigIssues(parsed.issues)
const report = (msg: string, fields: object = {}) => log(config.settings, 'info', { msg, ...fields })

process.on('unhandledRejection', error =>
  log(config.settings, 'error', { msg: 'unhandled-rejection', reason: String(error) }),
)

const signals = ['SIGTERM', 'SIGINT'] as const
/** Until the start is complete, no request has an effect, so none is waited for. */
const abandonStart = (): void => {
  report('stopped while starting')
  process.exit(0)
}
for (const signal of signals) process.once(signal, abandonStart)
// A parent that spawned this process with an IPC channel and died can no longer send a signal.
if (process.channel) process.once('disconnect', abandonStart)

const witness: Witness = await startWitness(config).catch((error: unknown) => {
  if (error instanceof ConfigIssuesError) return exitWithConfigIssues(error.issues)
  if (error instanceof SchemaVersionError) return exitWith(EXIT_INVALID_CONFIG, `schema: ${error.message}`)
  return exitWith(EXIT_FAILURE, `start: ${error instanceof Error ? error.message : String(error)}`)
})

let isStopping = false
const stop = (reason: string): void => {
  if (isStopping) return
  isStopping = true
  report('stopping', { reason })
  void endProcess(process, STOP_TIMEOUT_MS, async () => {
    await witness.stop()
    report('stopped')
  })
}
for (const signal of signals) {
  process.removeListener(signal, abandonStart)
  process.on(signal, () => stop(signal))
}
process.removeListener('disconnect', abandonStart)
if (process.channel) process.on('disconnect', () => stop('parent gone'))

// Last, because a parent may send a signal as soon as it reads this line.
report('ready', { port: witness.port })

import { resolve } from 'node:path'
import { parseTokenList } from '../src/http/domain/token-list.ts'
import { parseTokenPolicies } from '../src/http/domain/token-policies.ts'
import { log } from '../src/log.ts'
import { readLocalConfig } from './config.ts'
import { startWorkerd } from './workerd.ts'

const projectRoot = resolve(import.meta.dirname, '../../..')
const waitsModule = resolve(import.meta.dirname, '../src/object/waits.ts')
const writeLine = (line: string) => process.stdout.write(`${line}\n`)

const parsed = readLocalConfig(process.env, projectRoot)
if ('errors' in parsed) {
  process.stderr.write(`${parsed.errors.join('; ')}\n`)
  process.exit(2)
}
const { config, warnings } = parsed
for (const warning of warnings) log(config.bindings, 'error', { msg: 'questionable-variable', ...warning })
const stopped = new Promise<void>(resolve => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => resolve())
  // The parent process has exited, for whatever reason.
  process.on('disconnect', () => resolve())
})
// Shut down cleanly even if the reader of the output has exited.
process.stdout.on('error', () => {})
process.stderr.on('error', () => {})
try {
  await using witness = await startWorkerd(resolve(projectRoot, 'wrangler.toml'), config, writeLine, waitsModule)
  const { BEARER_TOKENS_CSV, TOKEN_POLICIES } = config.bindings
  if (parseTokenList(BEARER_TOKENS_CSV).length + parseTokenPolicies(TOKEN_POLICIES).policies.length === 0) {
    const detail = 'BEARER_TOKENS_CSV and TOKEN_POLICIES are empty: all requests will be rejected.'
    log(config.bindings, 'error', { msg: 'no-tokens', detail })
  }
  writeLine(JSON.stringify({ level: 'info', service: 'lease-witness', msg: 'ready', port: witness.port }))
  await Promise.race([stopped, witness.failed])
  await witness.endWaits()
} catch (error) {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`lease-witness: ${message.replace(/\s+/g, ' ')}\n`)
  process.exitCode = 1
}
// An open IPC channel to the parent would keep this process alive.
if (process.connected) process.disconnect()

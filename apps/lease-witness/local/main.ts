import { resolve } from 'node:path'
import { parseTokenList } from '../src/http/domain/token-list.ts'
import { log } from '../src/log.ts'
import { readConfig } from './config.ts'
import { startWorkerd } from './workerd.ts'

const projectRoot = resolve(import.meta.dirname, '../../..')
const say = (line: string) => process.stdout.write(`${line}\n`)

const read = readConfig(process.env, projectRoot)
if ('faults' in read) {
  process.stderr.write(`${read.faults.join('; ')}\n`)
  process.exit(2)
}
const { config } = read
const stopped = new Promise<void>(resolve => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => resolve())
  // Whoever started us is gone, however that ended.
  process.on('disconnect', () => resolve())
})
// A reader that went away must not keep the rest from ending in order.
process.stdout.on('error', () => {})
process.stderr.on('error', () => {})
try {
  await using witness = await startWorkerd(resolve(projectRoot, 'wrangler.toml'), config, say)
  if (parseTokenList(config.bindings.BEARER_TOKENS_CSV).length === 0) {
    log(config.bindings, 'error', { msg: 'no-tokens', detail: 'BEARER_TOKENS_CSV is empty: nobody is let in.' })
  }
  say(JSON.stringify({ level: 'info', service: 'lease-witness', msg: 'ready', port: witness.port }))
  await Promise.race([stopped, witness.failed])
} catch (error) {
  const message = error instanceof Error ? error.message : String(error)
  process.stderr.write(`lease-witness: ${message.replace(/\s+/g, ' ')}\n`)
  process.exitCode = 1
}
// The channel to whoever started us would keep us here.
if (process.connected) process.disconnect()

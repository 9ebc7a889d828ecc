import { resolve } from 'node:path'
import { readConfig } from './config.ts'
import { startWorkerd } from './workerd.ts'

const projectRoot = resolve(import.meta.dirname, '../../..')
const say = (line: string) => process.stdout.write(`${line}\n`)

const read = readConfig(process.env, projectRoot)
if ('faults' in read) {
  process.stderr.write(`${read.faults.join('; ')}\n`)
  process.exit(2)
}
const stopped = new Promise<void>(resolve => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => resolve())
  // Whoever started us is gone, however that ended.
  process.on('disconnect', () => resolve())
})
// A reader that went away must not keep the rest from ending in order.
process.stdout.on('error', () => {})
try {
  await using witness = await startWorkerd(resolve(projectRoot, 'wrangler.toml'), read.config, say)
  say(JSON.stringify({ level: 'info', service: 'lease-witness', msg: 'ready', port: witness.port }))
  await stopped
} catch (error) {
  process.stderr.write(`lease-witness: ${error instanceof Error ? error.message : error}\n`)
  process.exitCode = 1
}

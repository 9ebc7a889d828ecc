import { readLocalConfig } from 'lease-witness/local/config.ts'
import { startWorkerd } from 'lease-witness/local/workerd.ts'

/**
 * A process of its own that runs a baseline as the witness's own process runs the witness: the same runtime with the same
 * options, storage in a folder. WORKER names the wrangler.toml.
 */
const read = readLocalConfig(process.env, import.meta.dirname)
const worker = process.env.WORKER
if ('errors' in read || worker === undefined) throw new Error('the environment of a baseline is not as it has to be')
const stopped = new Promise<void>(resolve => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'disconnect'] as const) process.on(signal, () => resolve())
})
const print = (line: string) => process.stdout.write(`${line}\n`)
{
  await using running = await startWorkerd(`${import.meta.dirname}/${worker}`, read.config, print)
  print(JSON.stringify({ msg: 'ready', port: running.port }))
  await stopped
}
// The channel to whoever started us would keep us.
if (process.connected) process.disconnect()

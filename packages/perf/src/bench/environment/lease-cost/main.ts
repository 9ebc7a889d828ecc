import { readLocalConfig } from 'lease-witness/local/config.ts'
import { startWorkerd } from 'lease-witness/local/workerd.ts'

/** Runs the counted witness as a separate process, as the local witness runs: the same runtime, with storage in a folder. */
const read = readLocalConfig(process.env, import.meta.dirname)
if ('errors' in read) throw new Error('invalid environment; set the variables of the local witness')
const stopped = new Promise<void>(resolve => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'disconnect'] as const) process.on(signal, () => resolve())
})
const print = (line: string) => process.stdout.write(`${line}\n`)
{
  await using running = await startWorkerd(`${import.meta.dirname}/counted.toml`, read.config, print)
  print(JSON.stringify({ msg: 'ready', port: running.port }))
  await stopped
}
// The IPC channel to the parent would keep this process alive.
if (process.connected) process.disconnect()

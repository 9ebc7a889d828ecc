import { readLocalConfig } from 'lease-witness/local/config.ts'
import { startWorkerd } from 'lease-witness/local/workerd.ts'

/**
 * Runs a baseline in a separate process, as the local witness does: the same runtime with the same options and storage in a
 * folder. WORKER is the name of the wrangler.toml. A profiler can connect to INSPECTOR_PORT, if it is set.
 */
const read = readLocalConfig(process.env, import.meta.dirname)
const worker = process.env.WORKER
const inspectorPort = process.env.INSPECTOR_PORT ? Number(process.env.INSPECTOR_PORT) : undefined
if ('errors' in read || worker === undefined)
  throw new Error('invalid environment; set WORKER and the variables of the local witness')
const stopped = new Promise<void>(resolve => {
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP', 'disconnect'] as const) process.on(signal, () => resolve())
})
const print = (line: string) => process.stdout.write(`${line}\n`)
{
  const wranglerToml = `${import.meta.dirname}/${worker}`
  await using running = await startWorkerd(wranglerToml, read.config, print, undefined, inspectorPort)
  print(JSON.stringify({ msg: 'ready', port: running.port }))
  await stopped
}
// The IPC channel to the parent would keep this process alive.
if (process.connected) process.disconnect()

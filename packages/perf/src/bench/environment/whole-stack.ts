import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '@pool/dev/ports'

/** The script of `pnpm start`. */
const entry = fileURLToPath(new URL('../../../../dev/src/start.ts', import.meta.url))
/** Printed once every service is ready. */
const READY = 'Ctrl-C shuts everything down'

export interface WholeStack extends AsyncDisposable {
  readonly pid: number
  /** Milliseconds from the spawn until it printed that it is ready. */
  readonly readyInMs: number
}

/** A directory for the data of `startWholeStack`. The user that Postgres runs as may search it. */
export const createDataDir = (folder: string): string => {
  const dataDir = mkdtempSync(join(folder, 'start-'))
  for (const path of [folder, dataDir]) chmodSync(path, 0o755)
  return dataDir
}

/** Without the programs of this checkout, as on a machine that has Node only. */
const outsidePath = (path = ''): string =>
  path
    .split(delimiter)
    .filter(folder => !folder.includes('node_modules'))
    .join(delimiter)

/** Starts the stack on free ports. */
export const startWholeStack = async (
  dataDir: string,
  defer: (stop: () => Promise<void>) => void,
): Promise<WholeStack> => {
  const names = ['PORT', 'PDM_OPERATOR_PORT', 'DNS_PORT', 'WITNESS_PORT']
  const ports = Object.fromEntries(await Promise.all(names.map(async name => [name, String(await freePort())])))
  const { PATH, HOME } = process.env
  const started = performance.now()
  const child = spawn(process.execPath, [entry], {
    env: { PATH: outsidePath(PATH), HOME, ...ports, DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A terminal's Ctrl-C must reach this process only, which stops the stack in order.
    detached: true,
  })
  const closed = once(child, 'close')
  const stop = async () => {
    child.kill('SIGTERM')
    await closed
  }
  defer(stop)
  let output = ''
  const ready = new Promise<number>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', text => {
        output += text
        if (output.includes(READY)) resolve(performance.now() - started)
      })
    void closed.then(() => reject(new Error(`pnpm start ended before it was ready:\n${output}`)))
  })
  const readyInMs = await ready
  return { pid: child.pid ?? 0, readyInMs, [Symbol.asyncDispose]: stop }
}

import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '@pool/dev-server/ports'

const entry = fileURLToPath(new URL('@pool/dev-server/src/start.ts', import.meta.url))
/** What it says once everything answers. */
const RUNNING = 'Ctrl-C stops everything'

export interface WholeStack extends AsyncDisposable {
  readonly pid: number
  /** Milliseconds from its spawning until it had said that it runs. */
  readonly readyInMs: number
}

/** A folder for the data of `startWholeStack`, which the account that Postgres runs as can reach. */
export const makeDataDir = (folder: string): string => {
  const made = mkdtempSync(join(folder, 'start-'))
  for (const path of [folder, made]) chmodSync(path, 0o755)
  return made
}

/** `pnpm start`, without pnpm: what its script runs, on ports of its own. */
export const startWholeStack = async (dataDir: string, cleanup: AsyncDisposableStack): Promise<WholeStack> => {
  const names = ['PORT', 'PDM_OPERATOR_PORT', 'DNS_PORT', 'WITNESS_PORT']
  const ports = Object.fromEntries(await Promise.all(names.map(async name => [name, String(await freePort())])))
  const { PATH, HOME } = process.env
  const started = performance.now()
  const child = spawn(process.execPath, [entry], {
    env: { PATH, HOME, ...ports, DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A terminal's Ctrl-C is for us, who stop it in order.
    detached: true,
  })
  const closed = new Promise<void>(resolve => child.on('close', () => resolve()))
  const stop = async () => {
    child.kill('SIGTERM')
    await closed
  }
  cleanup.defer(stop)
  let output = ''
  const running = new Promise<number>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', piece => {
        output += piece
        if (output.includes(RUNNING)) resolve(performance.now() - started)
      })
    void closed.then(() => reject(new Error(`pnpm start ended before it was ready:\n${output}`)))
  })
  const readyInMs = await running
  return { pid: child.pid ?? 0, readyInMs, [Symbol.asyncDispose]: stop }
}

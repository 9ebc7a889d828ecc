import { spawn } from 'node:child_process'
import { chmodSync, mkdtempSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '@pool/dev/ports'
import { readProcessTree } from '@pool/test-kit/processes.ts'

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

export interface StartCommand {
  readonly command: string
  readonly args: readonly string[]
  /** Default: that of this process. */
  readonly cwd?: string
}

/** The script of `pnpm start`, without pnpm. */
const SCRIPT: StartCommand = { command: process.execPath, args: [entry] }

/** Without the programs of this checkout, as on a machine that has Node only. */
const outsidePath = (path = ''): string =>
  path
    .split(delimiter)
    .filter(folder => !folder.includes('node_modules'))
    .join(delimiter)

/** The process that stops the stack in order. Undefined: the command has not started it yet. */
const findStartProcess = (root: number): number | undefined =>
  readProcessTree(root).findLast(({ command }) => command.includes('dev/src/start.ts'))?.pid

/** Starts the stack on free ports. */
export const startWholeStack = async (
  dataDir: string,
  defer: (stop: () => Promise<void>) => void,
  { command, args, cwd }: StartCommand = SCRIPT,
): Promise<WholeStack> => {
  const names = ['PORT', 'PDM_OPERATOR_PORT', 'DNS_PORT', 'WITNESS_PORT']
  const ports = Object.fromEntries(await Promise.all(names.map(async name => [name, String(await freePort())])))
  const { PATH, HOME } = process.env
  const started = performance.now()
  const child = spawn(command, args, {
    ...(cwd === undefined ? {} : { cwd }),
    env: { PATH: outsidePath(PATH), HOME, ...ports, DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A terminal's Ctrl-C must reach this process only, which stops the stack in order.
    detached: true,
  })
  const closed = new Promise<void>(resolve => child.on('close', () => resolve()))
  const stop = async () => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      // A package manager in between might forward the signal as well, and a second one forces the end.
      const pid = findStartProcess(child.pid)
      process.kill(pid ?? -child.pid, 'SIGTERM')
    }
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

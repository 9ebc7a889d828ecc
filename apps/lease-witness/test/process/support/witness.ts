import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type NodeProcess, startNode } from '@pool/dev/process'
import { TOKEN } from '@pool/test-kit/lease-connection.ts'

const ENTRY = resolve(import.meta.dirname, '../../../local/main.ts')
const RUN_WORKER = resolve(import.meta.dirname, 'run-worker.ts')
/** Without a request limit, because the tests share a token. */
const DEFAULT_ENV = { PORT: '0', BEARER_TOKENS_CSV: TOKEN, MAX_REQUESTS_PER_MINUTE: '0', LOG_LEVEL: 'error' }

export interface RunningWitness extends AsyncDisposable {
  readonly port: number
  readonly process: NodeProcess
  /** All lines of its output so far. */
  readonly lines: readonly string[]
}

/** The witness as `pnpm --filter lease-witness start` runs it: a Node process with workerd as its child. */
export const startWitness = (dataDir: string, env: Readonly<Record<string, string>> = {}): Promise<RunningWitness> =>
  startEntry(ENTRY, { ...DEFAULT_ENV, DATA_DIR: dataDir, ...env })

const startEntry = async (entry: string, env: Readonly<Record<string, string>>): Promise<RunningWitness> => {
  const lines: string[] = []
  const process = startNode({ entry, env, onLine: line => lines.push(line) })
  const { port } = await process.ready
  if (typeof port !== 'number') throw new Error('the ready line of the witness has no port')
  return { port, process, lines, [Symbol.asyncDispose]: async () => void (await process.stop()) }
}

const PROJECT_ROOT = resolve(import.meta.dirname, '../../../../..')

/** The witness with objects that `POST /restart/<slot>` restarts. */
export const startRestartableWitness = async (
  dataDir: string,
  env: Readonly<Record<string, string>> = {},
): Promise<RunningWitness> => {
  const main = JSON.stringify(resolve(import.meta.dirname, '../../worker/support/restartable-witness.ts'))
  const wranglerToml = join(dataDir, 'wrangler.toml')
  const toml = readFileSync(join(PROJECT_ROOT, 'wrangler.toml'), 'utf8')
  writeFileSync(wranglerToml, toml.replace(/^main = .*$/m, `main = ${main}`))
  return startEntry(RUN_WORKER, { ...DEFAULT_ENV, WORKER: wranglerToml, DATA_DIR: dataDir, ...env })
}

export const temporaryDirectory = (): Disposable & { readonly path: string } => {
  const path = mkdtempSync(join(tmpdir(), 'witness-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

const START_FAILURE_TIMEOUT_MS = 60_000

/** Starts the witness with an environment that must make it exit. */
export const failToStart = async (
  env: Readonly<Record<string, string>>,
): Promise<{ readonly code: number | null; readonly lines: readonly string[] }> => {
  const lines: string[] = []
  const process = startNode({ entry: ENTRY, env: { ...DEFAULT_ENV, ...env }, onLine: line => lines.push(line) })
  void process.ready.then(() => process.kill()).catch(() => {})
  const timeout = setTimeout(process.kill, START_FAILURE_TIMEOUT_MS)
  const { code } = await process.exited.finally(() => clearTimeout(timeout))
  return { code, lines }
}

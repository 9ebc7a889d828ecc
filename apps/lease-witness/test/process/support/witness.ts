import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type NodeProcess, startNode } from '@pool/dev-server/process'
import { TOKEN } from '@pool/test-kit/lease-connection.ts'

export { TOKEN }

export interface RunningWitness extends AsyncDisposable {
  readonly port: number
  readonly process: NodeProcess
  /** Every line that the process has written. */
  readonly lines: readonly string[]
}

/** The witness as `pnpm --filter lease-witness start` runs it: a Node process with workerd below it, on real sockets. */
export const startWitness = async (
  dataDir: string,
  env: Readonly<Record<string, string>> = {},
): Promise<RunningWitness> => {
  const lines: string[] = []
  const process = startNode({
    entry: resolve(import.meta.dirname, '../../../local/main.ts'),
    env: { PORT: '0', BEARER_TOKENS_CSV: TOKEN, LOG_LEVEL: 'error', DATA_DIR: dataDir, ...env },
    onLine: line => lines.push(line),
  })
  const { port } = await process.ready
  if (typeof port !== 'number') throw new Error('the witness did not say where it listens')
  return { port, process, lines, [Symbol.asyncDispose]: async () => void (await process.stop()) }
}

export const temporaryFolder = (): Disposable & { readonly path: string } => {
  const path = mkdtempSync(join(tmpdir(), 'witness-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

const FAILS_WITHIN_MS = 15_000

/** A start that is expected to end by itself: how it did, and what it said. */
export const failedStart = async (
  env: Readonly<Record<string, string>>,
): Promise<{ readonly code: number | null; readonly lines: readonly string[] }> => {
  const lines: string[] = []
  const process = startNode({
    entry: resolve(import.meta.dirname, '../../../local/main.ts'),
    env: { PORT: '0', BEARER_TOKENS_CSV: TOKEN, LOG_LEVEL: 'error', ...env },
    onLine: line => lines.push(line),
  })
  void process.ready.then(() => process.kill()).catch(() => {})
  const late = setTimeout(process.kill, FAILS_WITHIN_MS)
  const { code } = await process.exited.finally(() => clearTimeout(late))
  return { code, lines }
}

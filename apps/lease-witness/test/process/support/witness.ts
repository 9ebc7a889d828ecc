import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import {
  LOCAL_WITNESS_ENTRY,
  runUntilExit,
  type Service,
  startLocalWitness,
  WITNESS_ENV,
} from '@pool/test-kit/services.ts'

const RUN_WORKER = resolve(import.meta.dirname, 'run-worker.ts')
const PROJECT_ROOT = resolve(import.meta.dirname, '../../../../..')

/** The witness with objects that `POST /restart/<slot>` restarts. */
export const startRestartableWitness = async (dataDir: string, env: Record<string, string> = {}): Promise<Service> => {
  const main = JSON.stringify(resolve(import.meta.dirname, '../../worker/support/restartable-witness.ts'))
  const wranglerToml = join(dataDir, 'wrangler.toml')
  const toml = readFileSync(join(PROJECT_ROOT, 'wrangler.toml'), 'utf8')
  writeFileSync(wranglerToml, toml.replace(/^main = .*$/m, `main = ${main}`))
  return startLocalWitness(dataDir, { WORKER: wranglerToml, ...env }, RUN_WORKER)
}

export const temporaryDirectory = (): Disposable & { readonly path: string } => {
  const path = mkdtempSync(join(tmpdir(), 'witness-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

/** Starts the witness with an environment that must make it exit. */
export const failToStart = (env: Record<string, string>) =>
  runUntilExit({ entry: LOCAL_WITNESS_ENTRY, env: { ...WITNESS_ENV, LOG_LEVEL: 'error', ...env } })

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { LOCAL_WITNESS_ENTRY, runUntilExit, WITNESS_ENV } from '@pool/test-kit/services.ts'

export const temporaryDirectory = (): Disposable & { readonly path: string } => {
  const path = mkdtempSync(join(tmpdir(), 'witness-'))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

/** Starts the witness with an environment that must make it exit. */
export const failToStart = (env: Record<string, string>) =>
  runUntilExit({ entry: LOCAL_WITNESS_ENTRY, env: { ...WITNESS_ENV, LOG_LEVEL: 'error', ...env } })

import { randomBytes } from 'node:crypto'
import { accessSync, constants, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PlainError } from './user-error.ts'

/** Everything that a start keeps, in one folder that can be deleted as a whole. */
export interface DataDir {
  readonly path: string
  readonly lock: string
  readonly postgres: string
  readonly postgresLog: string
  readonly apiLog: string
  /** Holds Terraform's states: what a deployment has made is known by them alone. */
  readonly deployments: string
  readonly operatorToken: string
  readonly witnessLog: string
  readonly witnessToken: string
}

export function openDataDir(folder: string): DataDir {
  try {
    mkdirSync(folder, { recursive: true })
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch {
    throw new PlainError(`cannot write to ${folder}: make it yours, or choose another with DATA_DIR=…`)
  }
  const path = realpathSync(folder)
  return {
    path,
    lock: join(path, 'start.lock'),
    postgres: join(path, 'postgres'),
    postgresLog: join(path, 'postgres.log'),
    apiLog: join(path, 'allocation-api.log'),
    deployments: join(path, 'deployments'),
    operatorToken: join(path, 'operator-token'),
    witnessLog: join(path, 'lease-witness.log'),
    witnessToken: join(path, 'witness-token'),
  }
}

/** Made once, so that what a person has pasted somewhere still works after the next start. */
export function keptToken(path: string): string {
  try {
    writeFileSync(path, `${randomBytes(24).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
  return readFileSync(path, 'utf8').trim()
}

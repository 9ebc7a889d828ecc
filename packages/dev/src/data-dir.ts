import { randomBytes } from 'node:crypto'
import { accessSync, constants, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { UserError } from './user-error.ts'

/** The paths in the data directory. The directory can be deleted as a whole. */
export interface DataDir {
  readonly path: string
  readonly lock: string
  readonly postgres: string
  readonly postgresLog: string
  readonly apiLog: string
  /** Contains the Terraform state files, the only record of what a deployment has created. */
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
    throw new UserError(`cannot write to ${folder}: check its permissions, or set DATA_DIR`)
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

/** The token persists, so that commands that a user has copied still work after a restart. */
export function loadOrCreateToken(path: string): string {
  try {
    writeFileSync(path, `${randomBytes(24).toString('base64url')}\n`, { mode: 0o600, flag: 'wx' })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  }
  return readFileSync(path, 'utf8').trim()
}

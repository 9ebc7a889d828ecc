import { randomBytes } from 'node:crypto'
import { accessSync, constants, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { findProxyIssues } from '@pool/runtime/service/proxy-issues'
import { EXIT_INVALID_CONFIG } from '@pool/runtime/service/run-service'
import { findUnknownVariables } from '@pool/runtime/service/unknown-variables'
import { UserError } from './user-error.ts'

export interface StartSettings {
  readonly apiPort: number
  readonly operatorPort: number
  readonly dnsPort: number
  readonly witnessPort: number
  /** Ports that are not set explicitly. If such a port is in use, `start` selects another one and prints it. */
  readonly defaultPorts: readonly ('operatorPort' | 'dnsPort' | 'witnessPort')[]
  readonly dataDir: string
  /** The pool in the printed commands. */
  readonly pool: string
  /** Passed to the services. */
  readonly env: NodeJS.ProcessEnv
}

/** What the witness gets as it is. */
export const WITNESS_SETTINGS = ['TOKEN_POLICIES', 'MAX_REQUESTS_PER_MINUTE', 'MAX_WAIT_SECONDS', 'LOG_LEVEL'] as const

/** The variables of this command and of the witness, which gets no others. The API finds its own. */
const OWN_VARIABLES = ['PORT', 'WITNESS_PORT', 'DNS_PORT', 'DATA_DIR', 'BEARER_TOKENS_CSV', ...WITNESS_SETTINGS]

/** Sentences about variables that look misspelt. */
export const findStartWarnings = (env: NodeJS.ProcessEnv): readonly string[] =>
  findUnknownVariables(env, { prefixes: [], names: OWN_VARIABLES }).map(
    ({ variable, detail }) => `${variable} ${detail}`,
  )

export function readStartSettings(env: NodeJS.ProcessEnv, projectRoot: string): StartSettings {
  const errors: string[] = []
  const port = (name: string, fallback: number): number => {
    const text = env[name]?.trim() || String(fallback)
    const value = /^\d{1,5}$/.test(text) ? Number(text) : 0
    if (value < 1 || value > 65_535) errors.push(`${name} must be a port from 1 to 65535`)
    return value
  }
  const apiPort = port('PORT', 8080)
  const operatorPort = port('PDM_OPERATOR_PORT', 8081)
  const dnsPort = port('DNS_PORT', 5300)
  const witnessPort = port('WITNESS_PORT', 8787)
  const isSet = (name: string) => Boolean(env[name]?.trim())
  const ports = { PORT: apiPort, PDM_OPERATOR_PORT: operatorPort, DNS_PORT: dnsPort, WITNESS_PORT: witnessPort }
  const explicit = Object.entries(ports).filter(([name]) => name === 'PORT' || isSet(name))
  for (const [i, [name, value]] of explicit.entries()) {
    const earlier = explicit.slice(0, i).find(([_, port]) => port === value)
    if (value > 0 && earlier) errors.push(`${earlier[0]} and ${name} are both ${value}`)
  }
  const movable: StartSettings['defaultPorts'] = [
    ...(isSet('PDM_OPERATOR_PORT') ? [] : (['operatorPort'] as const)),
    ...(isSet('DNS_PORT') ? [] : (['dnsPort'] as const)),
    ...(isSet('WITNESS_PORT') ? [] : (['witnessPort'] as const)),
  ]
  errors.push(...findProxyIssues(env).map(({ variable, detail }) => `${variable} ${detail}`))
  if (errors.length > 0) throw new UserError(errors.join('; '), EXIT_INVALID_CONFIG)
  // A relative DATA_DIR is relative to the directory in which the user ran the command: INIT_CWD of the package manager.
  const configured = env.DATA_DIR?.trim()
  const dataDir = configured ? resolve(env.INIT_CWD ?? '.', configured) : join(projectRoot, '.data')
  return { apiPort, operatorPort, dnsPort, witnessPort, defaultPorts: movable, dataDir, pool: firstPool(env), env }
}

function firstPool(env: NodeJS.ProcessEnv): string {
  const lists = [env.DNSPROVIDER_MANAGED_DOMAINS, env.DNSPROVIDER_DOMAIN, 'pool.test']
  const first = lists.flatMap(list => (list ?? '').toLowerCase().split(/[\s,]+/)).find(name => name !== '')
  return (first ?? '').replace(/\.$/, '')
}

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

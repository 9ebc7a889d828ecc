import { isBarred } from '../deployments/terraform/domain/env.ts'
import { type Backend, DEPLOYMENT } from '../deployments/terraform/domain/root-module.ts'
import { isJsonObject } from '../lib/json.ts'
import type { EnvReader } from './env.ts'

export interface TerraformSettings {
  /** A path, or a name on the PATH; null: the first of terraform and tofu there. */
  readonly binary: string | null
  /** Holds the work folders, and the states without another backend. Below the working directory when relative. */
  readonly folder: string
  /** Null: the one that comes with this service. */
  readonly moduleFolder: string | null
  /** Null: `local`, in the folder. */
  readonly backend: Backend | null
  /** Over everything that one making does. */
  readonly timeoutMs: number
  /** Names of further variables that the binary is given. */
  readonly passed: readonly string[]
}

/** Arguments of backends that are credentials: what is generated stands in a file. */
const credentials =
  /^(?:access_key|secret_key|token|access_token|security_token|password|client_secret|client_certificate_password|sas_token|oidc_token|oidc_request_token|conn_str|credentials|encryption_key|sse_customer_key|private_key|client_private_key_pem)$/

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** Every argument, of blocks within too. */
const entriesIn = (value: unknown): readonly (readonly [name: string, value: unknown])[] =>
  typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([name, each]) => [[name, each] as const, ...entriesIn(each)])
    : []

const readBackend = (read: EnvReader): Backend | null => {
  const variable = 'PDM_TERRAFORM_BACKEND'
  const text = read.text(variable)
  if (text === undefined) return null
  const parsed = parse(text)
  const [[type, settings] = ['', null], ...more] = Object.entries(isJsonObject(parsed) ? parsed : {})
  if (!isJsonObject(settings) || more.length > 0 || !/^[a-z0-9_]+$/.test(type)) {
    // It may hold a password all the same, so it is not quoted.
    read.fault(variable, `must be JSON of one backend, such as {"s3":{"bucket":"b","key":"${DEPLOYMENT}.tfstate"}}`)
    return null
  }
  const entries = entriesIn(settings)
  const secret = entries.find(([name]) => credentials.test(name))?.[0]
  if (secret) {
    read.fault(variable, `must not hold "${secret}": give it in the environment, named in PDM_TERRAFORM_PASS_ENV`)
  }
  if (!entries.some(([, each]) => typeof each === 'string' && each.includes(DEPLOYMENT))) {
    read.fault(variable, `must hold ${DEPLOYMENT}: deployments must not share a state`)
  }
  // The work folder, which it would be relative to, is removed.
  if (type === 'local' && !(typeof settings.path === 'string' && settings.path.startsWith('/'))) {
    read.fault(variable, 'must name an absolute path')
  }
  return { type, settings }
}

const readPassed = (read: EnvReader): readonly string[] => {
  const variable = 'PDM_TERRAFORM_PASS_ENV'
  const names = (read.text(variable) ?? '').split(/[\s,]+/).filter(Boolean)
  for (const name of names) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) read.fault(variable, 'must hold names of variables, without values')
    else if (isBarred(name)) read.fault(variable, `must not hold ${name}, which is never passed`)
  }
  return [...new Set(names)]
}

export const readTerraform = (read: EnvReader): TerraformSettings => ({
  binary: read.text('PDM_TERRAFORM_BINARY') ?? null,
  folder: read.text('PDM_DEPLOYMENTS_DIR') ?? '.data/deployments',
  moduleFolder: read.text('PDM_TERRAFORM_MODULE') ?? null,
  backend: readBackend(read),
  timeoutMs: read.durationMs('PDM_DEPLOYMENT_TIMEOUT', '30m', { min: '1s', max: '24h' }),
  passed: readPassed(read),
})

import type { Env, EnvReader } from '@pool/runtime/service/env'
import { isJsonObject, parseJson } from '../lib/text.ts'

/** A Terraform backend and its arguments, as in a `terraform` block. */
export interface Backend {
  readonly type: string
  readonly settings: Readonly<Record<string, unknown>>
}

/** The placeholder for the state key in the settings of a backend. */
export const STATE_KEY_PLACEHOLDER = '{deployment}'

export interface TerraformSettings {
  /** A path, or a name on the PATH; null: the first of terraform and tofu on the PATH. */
  readonly binary: string | null
  /** Holds the working directories, and the states of the default backend. Relative to the process's working directory. */
  readonly dataDir: string
  /** Null: the module that comes with this service. */
  readonly moduleDir: string | null
  /** Null: `local`, in `dataDir`. */
  readonly backend: Backend | null
  /** For one apply, `init` included. */
  readonly timeoutMs: number
  /** How long an apply or a destroy that was interrupted is waited for, before its processes are killed. */
  readonly stopTimeoutMs: number
  /** Names of additional variables that the binary inherits. */
  readonly passthrough: readonly string[]
  /** `auto`: where the kernel permits it. */
  readonly isolation: 'auto' | 'required' | 'off'
  /** The socket of the process that runs the binary; null: this one does. */
  readonly runner: string | null
  /** Absolute paths that an isolated binary can read, in addition to those that it is known to need. */
  readonly visiblePaths: readonly string[]
}

/** Backend arguments that are credentials. The generated configuration is a file, so they must not be in it. */
const CREDENTIAL_ARGUMENT =
  /^(?:access_key|secret_key|token|access_token|security_token|password|client_secret|client_certificate_password|sas_token|oidc_token|oidc_request_token|conn_str|credentials|encryption_key|sse_customer_key|private_key|client_private_key_pem)$/

/** Every argument, including those of nested blocks. */
const allArguments = (value: unknown): readonly (readonly [name: string, value: unknown])[] =>
  typeof value === 'object' && value !== null
    ? Object.entries(value).flatMap(([name, nested]) => [[name, nested] as const, ...allArguments(nested)])
    : []

const readBackend = (env: EnvReader): Backend | null => {
  const variable = 'PDM_TERRAFORM_BACKEND'
  const text = env.text(variable)
  if (text === undefined) return null
  const parsed = parseJson(text)
  const [[type, settings] = ['', null], ...otherBackends] = Object.entries(isJsonObject(parsed) ? parsed : {})
  if (!isJsonObject(settings) || otherBackends.length > 0 || !/^[a-z0-9_]+$/.test(type)) {
    // The value is not quoted: it may hold a password all the same.
    const example = `{"s3":{"bucket":"b","key":"${STATE_KEY_PLACEHOLDER}.tfstate"}}`
    env.addIssue(variable, `must be a JSON object with one backend, such as ${example}`)
    return null
  }
  const backendArguments = allArguments(settings)
  const credential = backendArguments.find(([name]) => CREDENTIAL_ARGUMENT.test(name))?.[0]
  if (credential) {
    env.addIssue(
      variable,
      `must not contain "${credential}": set it in the environment and list its variable in PDM_TERRAFORM_PASS_ENV`,
    )
  }
  if (!backendArguments.some(([, value]) => typeof value === 'string' && value.includes(STATE_KEY_PLACEHOLDER))) {
    env.addIssue(variable, `must contain ${STATE_KEY_PLACEHOLDER}, so that deployments do not share a state`)
  }
  // A relative path would be in the working directory of a run, which is deleted.
  if (type === 'local' && !(typeof settings.path === 'string' && settings.path.startsWith('/'))) {
    env.addIssue(variable, 'must have an absolute path')
  }
  return { type, settings }
}

/**
 * Variables that Terraform never inherits. TF_LOG and its relatives make it print secrets; the others would override what
 * this service decides: https://developer.hashicorp.com/terraform/cli/config/environment-variables
 */
const DENYLIST =
  /^(?:TF_LOG.*|TF_VAR_.*|TF_CLI_ARGS.*|TF_DATA_DIR|TF_WORKSPACE|TF_INPUT|TF_IN_AUTOMATION|PDM_.*|DNSPROVIDER_.*)$/i

export const isDenied = (variable: string): boolean => DENYLIST.test(variable)

const readPassthrough = (env: EnvReader): readonly string[] => {
  const variable = 'PDM_TERRAFORM_PASS_ENV'
  const names = (env.text(variable) ?? '').split(/[\s,]+/).filter(Boolean)
  for (const name of names) {
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) env.addIssue(variable, 'must list names of variables, without values')
    else if (isDenied(name)) env.addIssue(variable, `must not list ${name}: Terraform never inherits it`)
  }
  return [...new Set(names)]
}

const readVisiblePaths = (env: EnvReader): readonly string[] => {
  const variable = 'PDM_TERRAFORM_PATHS'
  const paths = (env.text(variable) ?? '').split(/[\s,]+/).filter(Boolean)
  if (!paths.every(path => path.startsWith('/'))) env.addIssue(variable, 'must list absolute paths')
  return paths
}

export const readTerraform = (env: EnvReader): TerraformSettings => ({
  binary: env.text('PDM_TERRAFORM_BINARY') ?? null,
  dataDir: env.text('PDM_DEPLOYMENTS_DIR') ?? '.data/deployments',
  moduleDir: env.text('PDM_TERRAFORM_MODULE') ?? null,
  backend: readBackend(env),
  timeoutMs: env.durationMs('PDM_DEPLOYMENT_TIMEOUT', '30m', { min: '1s', max: '24h' }),
  stopTimeoutMs: env.durationMs('PDM_TERRAFORM_STOP_TIMEOUT', '10m', { min: '1s', max: '24h' }),
  passthrough: readPassthrough(env),
  isolation: env.oneOf('PDM_TERRAFORM_ISOLATION', ['auto', 'required', 'off'], 'auto'),
  runner: env.text('PDM_TERRAFORM_RUNNER') ?? null,
  visiblePaths: readVisiblePaths(env),
})

const proxyVariables = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'].flatMap(name => [
  name,
  name.toLowerCase(),
])

/** What the binary, its plugins and their provisioners inherit from the service without configuration. */
export const INHERITED_VARIABLES: readonly string[] = [
  ...['PATH', 'HOME', 'TMPDIR', 'LANG', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'TF_CLI_CONFIG_FILE', 'TF_PLUGIN_CACHE_DIR'],
  ...proxyVariables,
]

const fixed = { CHECKPOINT_DISABLE: '1', TF_IN_AUTOMATION: '1', TF_INPUT: '0' }

const pick = (env: Env, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    names.flatMap(name => {
      const value = isDenied(name) ? undefined : env[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )

/** The environment of every command, to which each adds the values of the module's variables. */
export const toTerraformEnv = (env: Env, passthrough: readonly string[]): Readonly<Record<string, string>> => ({
  ...pick(env, [...INHERITED_VARIABLES, ...passthrough]),
  ...fixed,
})

/** A passed value may be a credential. Shorter values, such as "true" or a port, are not masked. */
const MIN_PASSTHROUGH_SECRET_LENGTH = 8

const decodeOrKeep = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const findPasswords = (env: Env): readonly string[] => {
  const passwords = Object.values(pick(env, proxyVariables)).flatMap(value => URL.parse(value)?.password || [])
  return [...passwords, ...passwords.map(decodeOrKeep)]
}

/** The passwords of proxies, and the values of `passthrough`. */
export const findEnvSecrets = (env: Env, passthrough: readonly string[]): readonly string[] => [
  ...findPasswords(env),
  ...Object.values(pick(env, passthrough)).filter(value => value.length >= MIN_PASSTHROUGH_SECRET_LENGTH),
]

/** Names of settings that are credentials, and of those that only say where credentials are, or for whom. */
const CREDENTIAL_NAME = /SECRET|TOKEN|PASS(?!IVE)|PWD|KEY|CREDENTIAL|PRIVATE|AUTH|CONN|DSN|SAS/i
const PLACE_NAME = /_(?:FILE|PATH|DIR|SOCK|URL|URI|ENDPOINT|HOST|REGION|(?<!KEY_)ID)$/i
const URL_WITH_PASSWORD = /:\/\/[^/\s@]*:[^/\s@]*@/
/** Words and numbers, as in `eu-central-1`, a path or a URL. What is generated mixes cases, or letters with digits. */
const ORDINARY_WORD = /^(?:[a-z]{0,24}|[A-Z]{0,24}|[A-Z][a-z]{0,24})\d{0,6}$/

/** Whether a passed value is a credential, rather than a setting that may be part of a result too. */
export const isCredential = (name: string, value: string): boolean => {
  if (URL_WITH_PASSWORD.test(value)) return true
  const isPlace = PLACE_NAME.test(name)
  if (CREDENTIAL_NAME.test(name) && !isPlace) return true
  if (/_ID$/i.test(name) && isPlace) return false
  return !value.split(/[^A-Za-z0-9]+/).every(word => ORDINARY_WORD.test(word))
}

/** What is certainly a secret. Shorter ones occur by chance in a result. */
export const findCredentials = (
  env: Env,
  passthrough: readonly string[],
  serviceSecrets: readonly string[],
): readonly string[] => {
  const passed = Object.entries(pick(env, passthrough)).filter(([name, value]) => isCredential(name, value))
  return [...findPasswords(env), ...passed.map(([, value]) => value), ...serviceSecrets].filter(
    value => value.length >= MIN_PASSTHROUGH_SECRET_LENGTH,
  )
}

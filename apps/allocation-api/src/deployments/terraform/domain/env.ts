import type { Env } from '../../../config/env.ts'
import { isDenied } from '../../../config/terraform.ts'

const proxyVariables = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'].flatMap(name => [
  name,
  name.toLowerCase(),
])

/** What the binary, its plugins and their provisioners inherit from the service without configuration. */
const ALLOWLIST = [
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

/** The complete environment of a command. It is the only place that holds the values of the module's variables. */
export const toTerraformEnv = (
  env: Env,
  passthrough: readonly string[],
  variables: Readonly<Record<string, string>>,
): Record<string, string> => ({
  ...pick(env, [...ALLOWLIST, ...passthrough]),
  ...fixed,
  ...Object.fromEntries(Object.entries(variables).map(([name, value]) => [`TF_VAR_${name}`, value])),
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

/** The passwords of proxies, and the values of `passthrough`. */
export const findEnvSecrets = (env: Env, passthrough: readonly string[]): readonly string[] => {
  const passwords = Object.values(pick(env, proxyVariables)).flatMap(value => {
    const password = URL.parse(value)?.password
    return password ? [password] : []
  })
  const values = Object.values(pick(env, passthrough)).filter(value => value.length >= MIN_PASSTHROUGH_SECRET_LENGTH)
  return [...passwords, ...passwords.map(decodeOrKeep), ...values]
}

import type { Env } from '../../../config/env.ts'

const proxies = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY']

/** What the binary, its plugins and their provisioners see of the service's own environment without being asked for. */
const always = [
  ...['PATH', 'HOME', 'TMPDIR', 'LANG', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'TF_CLI_CONFIG_FILE', 'TF_PLUGIN_CACHE_DIR'],
  ...proxies,
  ...proxies.map(name => name.toLowerCase()),
]

/**
 * Never passed. TF_LOG and its kin make Terraform print secrets; with the others the environment would have a say in
 * what is this service's to decide: https://developer.hashicorp.com/terraform/cli/config/environment-variables
 */
const barred =
  /^(?:TF_LOG.*|TF_VAR_.*|TF_CLI_ARGS.*|TF_DATA_DIR|TF_WORKSPACE|TF_INPUT|TF_IN_AUTOMATION|PDM_.*|DNSPROVIDER_.*)$/i

export const isBarred = (name: string): boolean => barred.test(name)

const fixed = { CHECKPOINT_DISABLE: '1', TF_IN_AUTOMATION: '1', TF_INPUT: '0' }

const picked = (env: Env, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    names.flatMap(name => {
      const value = isBarred(name) ? undefined : env[name]
      return value === undefined ? [] : [[name, value]]
    }),
  )

/** The whole environment of a command; the values of the module's variables are in it and nowhere else. */
export const environmentOf = (
  env: Env,
  passed: readonly string[],
  values: Readonly<Record<string, string>>,
): Record<string, string> => ({
  ...picked(env, [...always, ...passed]),
  ...fixed,
  ...Object.fromEntries(Object.entries(values).map(([name, value]) => [`TF_VAR_${name}`, value])),
})

/** What is passed may be a credential, so its value is masked from eight characters on: "true" and a port are none. */
const SHORTEST_PASSED = 8

const safelyDecoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The passwords of proxies, and the values of what is passed. */
export const secretsIn = (env: Env, passed: readonly string[]): readonly string[] => {
  const passwords = Object.entries(picked(env, [...proxies, ...proxies.map(name => name.toLowerCase())])).flatMap(
    ([, value]) => {
      const password = URL.parse(value)?.password
      return password ? [password] : []
    },
  )
  const values = Object.values(picked(env, passed)).filter(value => value.length >= SHORTEST_PASSED)
  return [...passwords, ...passwords.map(safelyDecoded), ...values]
}

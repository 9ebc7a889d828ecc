import type { Env } from '../../../config/env.ts'
import { isDenied } from '../../../config/terraform.ts'

const proxies = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY']

/** What the binary, its plugins and their provisioners see of the service's own environment without being asked for. */
const always = [
  ...['PATH', 'HOME', 'TMPDIR', 'LANG', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'TF_CLI_CONFIG_FILE', 'TF_PLUGIN_CACHE_DIR'],
  ...proxies,
  ...proxies.map(name => name.toLowerCase()),
]

const fixed = { CHECKPOINT_DISABLE: '1', TF_IN_AUTOMATION: '1', TF_INPUT: '0' }

const picked = (env: Env, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    names.flatMap(name => {
      const value = isDenied(name) ? undefined : env[name]
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

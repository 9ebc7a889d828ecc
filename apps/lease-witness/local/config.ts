import { resolve } from 'node:path'
import { findUnknownVariables, type UnknownVariable } from '@pool/runtime/service/unknown-variables'
import { findSettingsIssues, SETTINGS } from '../src/settings.ts'

export interface LocalConfig {
  readonly port: number
  /** Contains `lease-witness/` with the files of the Durable Objects and the KV namespace. */
  readonly dataDir: string
  /** Whether a request whose `Host` is not a loopback name is rejected. */
  readonly loopbackHostsOnly: boolean
  /** The worker's bindings in addition to the variables of wrangler.toml. */
  readonly bindings: Readonly<Record<string, string>>
}

/** What is set of the settings. LOCATION_HINTS and JURISDICTION are Cloudflare's only. */
const pickSettings = (env: Readonly<Record<string, string | undefined>>): Readonly<Record<string, string>> =>
  Object.fromEntries(SETTINGS.flatMap(name => (env[name]?.trim() ? [[name, env[name]]] : [])))

const VARIABLES = { prefixes: [], names: [...SETTINGS, 'PORT', 'DATA_DIR', 'LOOPBACK_HOSTS_ONLY'] }

/** Parses the environment, or returns all its errors. The warnings are variables that look misspelt. */
export const readLocalConfig = (
  env: Readonly<Record<string, string | undefined>>,
  projectRoot: string,
):
  | { readonly config: LocalConfig; readonly warnings: readonly UnknownVariable[] }
  | { readonly errors: readonly string[] } => {
  const errors: string[] = []
  const portText = env.PORT?.trim() || '8787'
  const port = /^\d{1,5}$/.test(portText) ? Number(portText) : -1
  if (port < 0 || port > 65_535) errors.push('PORT must be a port from 0 to 65535')

  const settings = pickSettings(env)
  errors.push(...findSettingsIssues(settings).map(({ variable, detail }) => `${variable} ${detail}`))
  const loopbackText = env.LOOPBACK_HOSTS_ONLY?.trim().toLowerCase() || 'false'
  if (!['true', 'false'].includes(loopbackText)) errors.push('LOOPBACK_HOSTS_ONLY must be true or false')
  const loopbackHostsOnly = loopbackText === 'true'
  if (errors.length > 0) return { errors }
  // Package managers change the working directory. INIT_CWD is the directory in which the user ran the command.
  const dataDirText = env.DATA_DIR?.trim()
  const dataDir = dataDirText ? resolve(env.INIT_CWD ?? '.', dataDirText) : resolve(projectRoot, '.data')
  return {
    config: {
      port,
      dataDir,
      loopbackHostsOnly,
      bindings: { BEARER_TOKENS_CSV: '', ...settings },
    },
    warnings: findUnknownVariables(env, VARIABLES),
  }
}

import { resolve } from 'node:path'
import { parseTokenList } from '../src/http/domain/token-list.ts'
import { LOG_LEVELS } from '../src/log.ts'
import { findSettingsIssues } from '../src/settings.ts'

export interface LocalConfig {
  readonly port: number
  /** Contains `lease-witness/` with the files of the Durable Objects and the KV namespace. */
  readonly dataDir: string
  /** Whether a request whose `Host` is not a loopback name is rejected. */
  readonly loopbackHostsOnly: boolean
  /** The worker's bindings in addition to the variables of wrangler.toml. */
  readonly bindings: Readonly<Record<string, string>>
}

/** Passed to the worker as they are. LOCATION_HINTS and JURISDICTION are Cloudflare's only. */
const SETTINGS = ['TOKEN_POLICIES', 'MAX_REQUESTS_PER_MINUTE', 'MAX_WAIT_SECONDS'] as const

const pickSettings = (env: Readonly<Record<string, string | undefined>>): Readonly<Record<string, string>> =>
  Object.fromEntries(SETTINGS.flatMap(name => (env[name]?.trim() ? [[name, env[name]]] : [])))

/** Parses the environment, or returns all its errors. */
export const readLocalConfig = (
  env: Readonly<Record<string, string | undefined>>,
  projectRoot: string,
): { readonly config: LocalConfig } | { readonly errors: readonly string[] } => {
  const errors: string[] = []
  const portText = env.PORT?.trim() || '8787'
  const port = /^\d{1,5}$/.test(portText) ? Number(portText) : -1
  if (port < 0 || port > 65_535) errors.push('PORT must be a port from 0 to 65535')

  const level = env.LOG_LEVEL?.trim()
  const isLevel = !level || LOG_LEVELS.some(known => known === level.toLowerCase())
  if (!isLevel) errors.push(`LOG_LEVEL must be one of ${LOG_LEVELS.join(', ')}`)

  const csv = env.BEARER_TOKENS_CSV ?? ''
  // A client could not send such a token in a header, so all its requests would be rejected without an explanation.
  const isSendable = parseTokenList(csv).every(token => /^[!-~]+$/.test(token))
  if (!isSendable) {
    errors.push('BEARER_TOKENS_CSV must be tokens of printable ASCII without spaces, separated by commas')
  }
  const settings = pickSettings(env)
  errors.push(
    ...findSettingsIssues({ ...settings, ...(isSendable ? { BEARER_TOKENS_CSV: csv } : {}) }).map(
      ({ variable, detail }) => `${variable} ${detail}`,
    ),
  )
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
      bindings: { BEARER_TOKENS_CSV: csv, ...settings, ...(level ? { LOG_LEVEL: level } : {}) },
    },
  }
}

import { isHostName } from '@pool/contract'
import { type CredentialSettings, readCredentials } from './credentials.ts'
import { type ConfigFault, type Env, EnvReader } from './env.ts'
import { type ObjectStorageSettings, readObjectStorage } from './object-storage.ts'
import { readTerraform, type TerraformSettings } from './terraform.ts'

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/** What the process runs on, shaped once from the environment. Names end in their unit. */
export interface Config {
  readonly port: number
  /** Null: the operator's address is not opened. */
  readonly operator: { readonly port: number; readonly tokens: readonly string[] } | null
  /** The lists are then answered on the operator's address alone. */
  readonly operatorOnlyList: boolean
  readonly logLevel: LogLevel
  readonly drainMs: number
  readonly managedDomains: readonly string[]
  readonly database: { readonly url: string; readonly poolSize: number; readonly timeoutMs: number }
  readonly reservation: { readonly ttlMs: number; readonly maxAgeMs: number }
  readonly sweeperIntervalMs: number
  readonly idempotencyTtlMs: number
  readonly dns: {
    readonly recordNames: readonly string[]
    readonly recordTtlSeconds: number
    readonly commitWaitMs: number
    readonly driftIntervalMs: number
  }
  readonly objectStorage: ObjectStorageSettings
  readonly credentials: CredentialSettings
  readonly deployments: TerraformSettings & {
    /** Worked on at a time by one process. */
    readonly atOnce: number
  }
}

/** The first that is set: the list, the legacy single domain, the built-in default. */
const readManagedDomains = (read: EnvReader, recordNames: readonly string[]): readonly string[] => {
  const variable = ['DNSPROVIDER_MANAGED_DOMAINS', 'DNSPROVIDER_DOMAIN'].find(name => read.list(name))
  if (!variable) return ['pool.test']
  const domains = [...new Set((read.list(variable) ?? []).map(domain => domain.replace(/\.$/, '')))]
  // RFC 1035 section 2.3.4: a name has 253 characters; the longest record stands below a label of 63.
  const longest = 253 - Math.max(...recordNames.map(name => (name === '@' ? 63 : 64 + name.length))) - 1
  for (const domain of domains) {
    // A private pool may be a single label, which is no host name by itself.
    if (!isHostName(`name.${domain}`)) read.fault(variable, `"${domain}" is not a domain name`)
    else if (domain.length > longest) read.fault(variable, `"${domain}" is longer than ${longest} characters`)
  }
  return domains
}

const readRecordNames = (read: EnvReader): readonly string[] => {
  const names = read.list('DNSPROVIDER_RECORD_NAMES') ?? ['@', '*', 'console', 'api', 'gitea', 'harbor']
  const relative =
    /^(?:@|\*|(?:\*\.)?[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?)*)$/
  for (const name of names) {
    if (!relative.test(name) || name.length > 100) {
      read.fault('DNSPROVIDER_RECORD_NAMES', `"${name}" is not "@", "*" or a name of at most 100 characters`)
    }
  }
  return names
}

/** Whether it is a URL of the scheme whose parts can be decoded, as the driver will. */
const isPostgresUrl = (text: string): boolean => {
  const url = URL.parse(text)
  if (!url || !/^postgres(?:ql)?:$/.test(url.protocol)) return false
  try {
    return [url.username, url.password, url.pathname].every(part => decodeURIComponent(part) !== null)
  } catch {
    return false
  }
}

const readDatabaseUrl = (read: EnvReader): string => {
  const form = 'postgres://user:password@host:5432/database'
  const url = read.text('PDM_DATABASE_URL')
  if (url === undefined) read.fault('PDM_DATABASE_URL', `is required: ${form}`)
  // The value holds a password, so no fault quotes it.
  else if (!isPostgresUrl(url)) {
    read.fault('PDM_DATABASE_URL', `must be a URL of the form ${form}, with special characters percent-encoded`)
  }
  return url ?? ''
}

const readOperator = (read: EnvReader, port: number): Config['operator'] => {
  const operatorPort = read.whole('PDM_OPERATOR_PORT', 8081, { min: 0, max: 65_535 })
  const tokens = (read.text('PDM_OPERATOR_TOKENS') ?? '')
    .split(',')
    .map(token => token.trim())
    .filter(Boolean)
  if (tokens.length === 0) return null
  // RFC 6750 section 2.1: what a bearer token can be made of. The fault does not quote it.
  if (!tokens.every(token => /^[A-Za-z0-9\-._~+/]+=*$/.test(token))) {
    read.fault('PDM_OPERATOR_TOKENS', 'must hold bearer tokens: characters A-Z a-z 0-9 - . _ ~ + / and = at the end')
  }
  if (operatorPort === port && port !== 0) read.fault('PDM_OPERATOR_PORT', 'must differ from PORT')
  return { port: operatorPort, tokens }
}

/** The environment as typed configuration, or everything that is wrong with it. */
export const readConfig = (env: Env): { config: Config } | { faults: readonly ConfigFault[] } => {
  const read = new EnvReader(env)
  const port = read.whole('PORT', 8080, { min: 0, max: 65_535 })
  const recordNames = readRecordNames(read)
  const ttlMs = read.durationMs('PDM_RESERVATION_TTL', '10m', { min: '1ms', max: '8760h' })
  const maxAgeMs = read.durationMs('PDM_RESERVATION_MAX_AGE', '24h', { min: '1ms', max: '8760h' })
  if (maxAgeMs < ttlMs && read.text('PDM_RESERVATION_MAX_AGE')) {
    read.fault('PDM_RESERVATION_MAX_AGE', 'must not be shorter than PDM_RESERVATION_TTL')
  }
  const config: Config = {
    port,
    operator: readOperator(read, port),
    operatorOnlyList: read.oneOf('PDM_OPERATOR_ONLY_LIST', ['true', 'false'], 'false') === 'true',
    logLevel: read.oneOf('PDM_LOG_LEVEL', logLevels, 'info'),
    drainMs: read.durationMs('PDM_DRAIN_DELAY', '0s', { min: '0s', max: '10s' }),
    managedDomains: readManagedDomains(read, recordNames),
    database: {
      url: readDatabaseUrl(read),
      poolSize: read.whole('PDM_DATABASE_POOL_SIZE', 10, { min: 1, max: 1_000 }),
      timeoutMs: read.durationMs('PDM_DATABASE_TIMEOUT', '5s', { min: '100ms', max: '1m' }),
    },
    reservation: { ttlMs, maxAgeMs: Math.max(ttlMs, maxAgeMs) },
    sweeperIntervalMs: read.durationMs('PDM_SWEEPER_INTERVAL', '30s', { min: '10ms', max: '24h' }),
    idempotencyTtlMs: read.durationMs('PDM_IDEMPOTENCY_TTL', '24h', { min: '1m', max: '8760h' }),
    dns: {
      recordNames,
      recordTtlSeconds: Math.round(
        read.durationMs('DNSPROVIDER_RECORD_TTL', '300s', { min: '1s', max: '168h' }) / 1_000,
      ),
      commitWaitMs: read.durationMs('PDM_DNS_COMMIT_WAIT', '5s', { min: '0s', max: '1m' }),
      driftIntervalMs: read.durationMs('PDM_DRIFT_INTERVAL', '10m', { min: '1s', max: '24h' }),
    },
    objectStorage: readObjectStorage(read),
    credentials: readCredentials(read),
    deployments: {
      ...readTerraform(read),
      atOnce: read.whole('PDM_DEPLOYMENT_CONCURRENCY', 2, { min: 1, max: 100 }),
    },
  }
  return read.faults.length > 0 ? { faults: read.faults } : { config }
}

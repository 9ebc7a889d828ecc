import { isHostName } from '@pool/contract'
import { parseDuration } from './duration.ts'

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

export const dnsProviderKinds = ['local'] as const
export type DnsProviderKind = (typeof dnsProviderKinds)[number]

/** What the process runs on, shaped once from the environment. Names end in their unit. */
export interface Config {
  readonly port: number
  /** Null: the operator's address is not opened. */
  readonly operator: { readonly port: number; readonly tokens: readonly string[] } | null
  /** `list` and `history` are then answered on the operator's address alone. */
  readonly operatorOnlyList: boolean
  readonly logLevel: LogLevel
  readonly drainMs: number
  readonly managedDomains: readonly string[]
  readonly database: { readonly url: string; readonly poolSize: number; readonly timeoutMs: number }
  readonly reservation: { readonly ttlMs: number; readonly maxAgeMs: number }
  readonly sweeperIntervalMs: number
  readonly idempotencyTtlMs: number
  readonly dns: {
    readonly kind: DnsProviderKind
    readonly local: { readonly host: string; readonly port: number }
    readonly recordNames: readonly string[]
    readonly recordTtlSeconds: number
    readonly commitWaitMs: number
  }
}

export interface ConfigFault {
  readonly variable: string
  readonly detail: string
}

type Env = Readonly<Record<string, string | undefined>>

/** Reads one variable after another and remembers what is wrong, so that every fault is told at once. */
class Reader {
  readonly faults: ConfigFault[] = []
  readonly #env: Env

  constructor(env: Env) {
    this.#env = env
  }

  /** The trimmed value; one that is empty or blank counts as unset. */
  text(variable: string): string | undefined {
    return this.#env[variable]?.trim() || undefined
  }

  fault(variable: string, detail: string): void {
    this.faults.push({ variable, detail })
  }

  whole(variable: string, fallback: number, range: { min: number; max: number }): number {
    const text = this.text(variable)
    if (text === undefined) return fallback
    const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    if (value >= range.min && value <= range.max) return value
    this.fault(variable, `must be a whole number from ${range.min} to ${range.max}`)
    return fallback
  }

  durationMs(variable: string, fallback: string, range: { min: string; max: string }): number {
    const value = parseDuration(this.text(variable) ?? fallback)
    const [min, max] = [parseDuration(range.min) ?? 0, parseDuration(range.max) ?? 0]
    if (value !== null && value >= min && value <= max) return Math.round(value)
    this.fault(variable, `must be a duration from ${range.min} to ${range.max}, such as ${fallback}`)
    return parseDuration(fallback) ?? 0
  }

  oneOf<Choice extends string>(variable: string, choices: readonly Choice[], fallback: Choice): Choice {
    const text = this.text(variable)?.toLowerCase()
    if (text === undefined) return fallback
    const choice = choices.find(known => known === text)
    if (!choice) this.fault(variable, `must be one of ${choices.join(', ')}`)
    return choice ?? fallback
  }

  /** Items between commas and white space, lower-cased, each once. Separators alone count as unset. */
  list(variable: string): readonly string[] | undefined {
    const items = (this.text(variable) ?? '')
      .toLowerCase()
      .split(/[\s,]+/)
      .filter(Boolean)
    return items.length > 0 ? [...new Set(items)] : undefined
  }
}

/** The first that is set: the list, the legacy single domain, the built-in default. */
const readManagedDomains = (read: Reader, recordNames: readonly string[]): readonly string[] => {
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

const readRecordNames = (read: Reader): readonly string[] => {
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

const readDatabaseUrl = (read: Reader): string => {
  const form = 'postgres://user:password@host:5432/database'
  const url = read.text('PDM_DATABASE_URL')
  if (url === undefined) read.fault('PDM_DATABASE_URL', `is required: ${form}`)
  // The value holds a password, so no fault quotes it.
  else if (!isPostgresUrl(url)) {
    read.fault('PDM_DATABASE_URL', `must be a URL of the form ${form}, with special characters percent-encoded`)
  }
  return url ?? ''
}

const readOperator = (read: Reader, port: number): Config['operator'] => {
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
  const read = new Reader(env)
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
      kind: read.oneOf('DNSPROVIDER_KIND', dnsProviderKinds, 'local'),
      local: {
        host: read.text('DNSPROVIDER_LOCAL_HOST') ?? '127.0.0.1',
        port: read.whole('DNSPROVIDER_LOCAL_PORT', 0, { min: 0, max: 65_535 }),
      },
      recordNames,
      recordTtlSeconds: Math.round(
        read.durationMs('DNSPROVIDER_RECORD_TTL', '300s', { min: '1s', max: '168h' }) / 1_000,
      ),
      commitWaitMs: read.durationMs('PDM_DNS_COMMIT_WAIT', '5s', { min: '0s', max: '1m' }),
    },
  }
  return read.faults.length > 0 ? { faults: read.faults } : { config }
}

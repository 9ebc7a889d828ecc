import { isDnsLabel, isHostName, parseHost } from '@pool/contract'
import { parseConnectionString } from '@pool/runtime/database/connection-string'
import type { EnvReader } from '@pool/runtime/service/env'
import type { RecordsOptions } from '../records/domain/types.ts'
import { type CredentialSettings, readCredentials } from './credentials.ts'
import { type DomainProofSettings, readDomainProof } from './domain-proof.ts'
import { isIpv6, type Network, parseNetwork } from './ip-address.ts'
import { type ObjectStorageSettings, readObjectStorage } from './object-storage.ts'
import { normalizeOrigin } from './origin.ts'
import { readRecords, readRecordsUrl } from './records.ts'
import { readTerraform, type TerraformSettings } from './terraform.ts'
import { readTestSettings } from './test-settings.ts'
import { readTracing, type TracingSettings } from './tracing.ts'
import { readWitness, type WitnessSettings } from './witness.ts'

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof logLevels)[number]

/** The configuration of the process, parsed once from the environment. Names end in their unit. */
export interface Config {
  readonly port: number
  /** The IP address that both listeners bind to; null: every address of the machine. */
  readonly listenAddress: string | null
  /** Null: there is no operator listener. */
  readonly operator: { readonly port: number; readonly tokens: readonly string[] } | null
  /** If true, only the operator listener has the lists. */
  readonly operatorOnlyList: boolean
  readonly browsers: {
    /** Normalized origins whose pages may send requests. */
    readonly allowedOrigins: readonly string[]
    /** The only hosts that a request can be for, as `parseHost` returns them; empty: any. */
    readonly allowedHosts: readonly string[]
    /** Whether a `Host` that is not a loopback name is rejected. */
    readonly loopbackHostsOnly: boolean
  }
  /** Whose Forwarded and X-Forwarded-For headers name the client. */
  readonly trustedProxies: readonly Network[]
  /** Of one client address of the in-cluster listener; null: no limit. */
  readonly clientWritesPerMinute: number | null
  /** Whether a credential that would be sent without TLS to another machine is an error. */
  readonly requiresTls: boolean
  readonly logLevel: LogLevel
  /** Null: no traces. */
  readonly tracing: TracingSettings | null
  /** Null: operators see no leases. */
  readonly witness: WitnessSettings | null
  /** The folder of the console's build; null: where the build writes it. */
  readonly consoleFolder: string | null
  readonly drainMs: number
  readonly keepAliveMs: number
  readonly managedDomains: readonly string[]
  readonly database: {
    readonly url: string
    readonly usesTls: boolean
    readonly poolSize: number
    readonly timeoutMs: number
  }
  readonly reservation: { readonly ttlMs: number; readonly maxAgeMs: number }
  /** Whether a client of the in-cluster listener can release only its own names. */
  readonly releaseNeedsToken: boolean
  /** Milliseconds for which a released active name can be reserved by its former client only. */
  readonly nameCoolOffMs: number
  readonly sweeperIntervalMs: number
  /** Milliseconds for which old rows are kept; null: indefinitely. */
  readonly retention: { readonly historyMs: number | null; readonly deploymentLogMs: number | null }
  readonly dns: {
    /** The records of each active name. `ttl` in seconds. */
    readonly recordTemplate: { readonly names: readonly string[]; readonly ttl: number; readonly challengeTtl?: number }
    readonly commitWaitMs: number
    readonly driftIntervalMs: number
    /** If false, the process reads and plans, but writes to no zone. */
    readonly writesZones: boolean
    /** As in `ReconcilerSettings`. */
    readonly keepsUnknown: boolean
    /** Whether the built-in DNS server can have pools that exist in the public DNS. */
    readonly acceptsAnyLocalDomain: boolean
    /** The URL of the provider's API in a test. */
    readonly testUrl: string | undefined
    /** Whether zones that were published with a provider of another kind move to the configured one. */
    readonly movesProvider: boolean
  }
  /** What tenants can set themselves. */
  readonly records: RecordsOptions
  readonly recordsUrl: string | null
  readonly objectStorage: ObjectStorageSettings
  readonly credentials: CredentialSettings
  readonly domainProof: DomainProofSettings
  readonly deployments: TerraformSettings & {
    /** Maximum number of deployments that one process works on at the same time. */
    readonly concurrency: number
    /** The names that the field `providers` of a request may contain. */
    readonly knownProviders: readonly string[]
    /** Whether a load balancer can have an address that is not routed, whatever the DNS provider. */
    readonly acceptsTestAddresses: boolean
  }
}

/** The first of these that is set: the list, the legacy single domain, the built-in default. */
const readManagedDomains = (env: EnvReader, recordNames: readonly string[]): readonly string[] => {
  const variable = ['DNSPROVIDER_MANAGED_DOMAINS', 'DNSPROVIDER_DOMAIN'].find(name => env.list(name))
  if (!variable) return ['pool.test']
  const domains = [...new Set((env.list(variable) ?? []).map(domain => domain.replace(/\.$/, '')))]
  // A name has at most 253 characters (RFC 1035 section 2.3.4), and a subdomain at most 63.
  const maxLength = 253 - Math.max(...recordNames.map(name => (name === '@' ? 63 : 64 + name.length))) - 1
  for (const domain of domains) {
    // A private pool may be a single label, which alone is not a host name.
    if (!isHostName(`name.${domain}`)) env.addIssue(variable, `"${domain}" is not a domain name`)
    else if (domain.length > maxLength) env.addIssue(variable, `"${domain}" is longer than ${maxLength} characters`)
  }
  return domains
}

const readRecordNames = (env: EnvReader): readonly string[] => {
  const names = env.list('DNSPROVIDER_RECORD_NAMES') ?? ['@', '*', 'console', 'api', 'gitea', 'harbor']
  const relativeName =
    /^(?:@|\*|(?:\*\.)?[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9])?)*)$/
  for (const name of names) {
    if (!relativeName.test(name) || name.length > 100) {
      env.addIssue('DNSPROVIDER_RECORD_NAMES', `"${name}" is not "@", "*" or a name of at most 100 characters`)
    }
  }
  return names
}

const readAllowedOrigins = (env: EnvReader): readonly string[] => {
  const items = env.list('PDM_ALLOWED_ORIGINS') ?? []
  return items.flatMap(item => {
    const origin = normalizeOrigin(item)
    if (origin === null) {
      env.addIssue(
        'PDM_ALLOWED_ORIGINS',
        `"${item}" is not an origin: write scheme, host and port only, as in https://console.example:8443`,
      )
    }
    return origin ?? []
  })
}

const readAllowedHosts = (env: EnvReader): readonly string[] =>
  (env.list('PDM_ALLOWED_HOSTS') ?? []).flatMap(item => {
    const host = isIpv6(item) ? `[${item}]` : item
    const parsed = /^(?:[^:]+|\[[^\]]+\])$/.test(host) ? parseHost(host) : null
    if (parsed === null) {
      env.addIssue('PDM_ALLOWED_HOSTS', `"${item}" is not a host name or an address; write it without scheme and port`)
    }
    return parsed ?? []
  })

const readTrustedProxies = (env: EnvReader): readonly Network[] =>
  (env.list('PDM_TRUSTED_PROXIES') ?? []).flatMap(item => {
    const network = parseNetwork(item)
    if (network === null) {
      env.addIssue(
        'PDM_TRUSTED_PROXIES',
        `"${item}" is not a network such as 10.0.0.0/8 or 2001:db8::/32, or an address`,
      )
    }
    return network ?? []
  })

/** How many connections each pool of a process opens at most, on demand. */
export const toPoolSizes = (poolSize: number) => ({
  write: poolSize,
  read: Math.max(2, Math.ceil(poolSize / 2)),
  /** As many locked rows are waited for at a time. */
  waiting: 4,
  /** For the reconciler, deployments and the pool registry. A statement of theirs that waits for a lock delays no request. */
  background: 8,
  /** For the locks of zones. Their statements wait for nothing, and few sessions stay warm. */
  zones: 2,
  /** Two, so that a write that hangs does not delay the health check. */
  probe: 2,
  count: 1,
  /** At the start, for checks and migrations. */
  start: 1,
})

export const readDatabaseUrl = (env: EnvReader): Pick<Config['database'], 'url' | 'usesTls'> => {
  const url = env.required('PDM_DATABASE_URL', 'postgres://user:password@host:5432/database')
  const connection = url === '' ? null : parseConnectionString(url)
  if (connection && 'issue' in connection) env.addIssue('PDM_DATABASE_URL', connection.issue)
  return { url, usesTls: connection !== null && 'tls' in connection && connection.tls !== null }
}

const readDatabase = (env: EnvReader): Config['database'] => ({
  ...readDatabaseUrl(env),
  poolSize: env.integer('PDM_DATABASE_POOL_SIZE', 10, { min: 1, max: 1_000 }),
  timeoutMs: env.durationMs('PDM_DATABASE_TIMEOUT', '5s', { min: '100ms', max: '1m' }),
})

const readKnownProviders = (env: EnvReader, storageProvider: string): readonly string[] => {
  const names = env.list('PDM_PROVIDERS') ?? []
  for (const name of names) {
    if (!isDnsLabel(name)) {
      env.addIssue('PDM_PROVIDERS', `"${name}" is not a label of 1 to 63 characters a-z, 0-9 and "-"`)
    }
  }
  return [...new Set(['local', storageProvider, ...names])]
}

/** Of an operator token. A shorter one is one that a person has chosen. */
const MIN_TOKEN_LENGTH = 16

export const explainShortToken = (length: number): string =>
  `has a token of fewer than ${length} characters, which can be guessed; replace it by the output of: openssl rand -hex 32`

const readOperator = (env: EnvReader, port: number): Config['operator'] => {
  const operatorPort = env.integer('PDM_OPERATOR_PORT', 8081, { min: 0, max: 65_535 })
  const tokens = (env.text('PDM_OPERATOR_TOKENS') ?? '')
    .split(',')
    .map(token => token.trim())
    .filter(Boolean)
  if (tokens.length === 0) return null
  // The syntax of a bearer token (RFC 6750 section 2.1). The issue does not quote the token.
  if (!tokens.every(token => /^[A-Za-z0-9\-._~+/]+=*$/.test(token))) {
    env.addIssue('PDM_OPERATOR_TOKENS', 'must list bearer tokens: characters A-Z a-z 0-9 - . _ ~ + / and = at the end')
  } else if (tokens.some(token => token.length < MIN_TOKEN_LENGTH)) {
    env.addIssue('PDM_OPERATOR_TOKENS', explainShortToken(MIN_TOKEN_LENGTH))
  }
  if (operatorPort === port && port !== 0) env.addIssue('PDM_OPERATOR_PORT', 'must differ from PORT')
  return { port: operatorPort, tokens }
}

/** Parses the environment into the configuration. What is invalid has its default, and an issue in `env`. */
export const readConfig = (env: EnvReader): Config => {
  const testSettings = readTestSettings(env)
  const port = env.integer('PORT', 8080, { min: 0, max: 65_535 })
  const operator = readOperator(env, port)
  const recordNames = readRecordNames(env)
  const ttlMs = env.durationMs('PDM_RESERVATION_TTL', '10m', { min: '1ms', max: '8760h' })
  const maxAgeMs = env.durationMs('PDM_RESERVATION_MAX_AGE', '24h', { min: '1ms', max: '8760h' })
  if (maxAgeMs < ttlMs && env.text('PDM_RESERVATION_MAX_AGE')) {
    env.addIssue('PDM_RESERVATION_MAX_AGE', 'must not be shorter than PDM_RESERVATION_TTL')
  }
  const objectStorage = readObjectStorage(env)
  return {
    port,
    listenAddress: env.address('PDM_LISTEN_ADDRESS'),
    operator,
    operatorOnlyList: env.oneOf('PDM_OPERATOR_ONLY_LIST', ['true', 'false'], 'false') === 'true',
    browsers: {
      allowedOrigins: readAllowedOrigins(env),
      allowedHosts: readAllowedHosts(env),
      loopbackHostsOnly: env.oneOf('PDM_LOOPBACK_HOSTS_ONLY', ['true', 'false'], 'false') === 'true',
    },
    trustedProxies: readTrustedProxies(env),
    clientWritesPerMinute: env.integer('PDM_CLIENT_WRITES_PER_MINUTE', 0, { min: 0, max: 1_000_000 }) || null,
    requiresTls: env.oneOf('PDM_REQUIRE_TLS', ['true', 'false'], 'false') === 'true',
    logLevel: env.oneOf('PDM_LOG_LEVEL', logLevels, 'info'),
    tracing: readTracing(env),
    witness: readWitness(env),
    consoleFolder: testSettings.consoleFolder ?? null,
    drainMs: env.durationMs('PDM_DRAIN_DELAY', '0s', { min: '0s', max: '10s' }),
    keepAliveMs: env.durationMs('PDM_KEEP_ALIVE_TIMEOUT', '75s', { min: '1s', max: '1h' }),
    managedDomains: readManagedDomains(env, recordNames),
    database: readDatabase(env),
    reservation: { ttlMs, maxAgeMs: Math.max(ttlMs, maxAgeMs) },
    releaseNeedsToken: env.oneOf('PDM_RELEASE_TOKEN', ['optional', 'required'], 'optional') === 'required',
    nameCoolOffMs: env.durationMs('PDM_NAME_COOL_OFF', '0s', { min: '0s', max: '8760h' }),
    sweeperIntervalMs: env.durationMs('PDM_SWEEPER_INTERVAL', '30s', { min: '10ms', max: '24h' }),
    retention: {
      // A day at least: a mistake such as 90m instead of 90 days cannot be undone.
      historyMs: env.optionalDurationMs('PDM_HISTORY_RETENTION', { min: '24h', max: '876000h' }),
      deploymentLogMs: env.optionalDurationMs('PDM_DEPLOYMENT_LOG_RETENTION', { min: '1h', max: '876000h' }),
    },
    dns: {
      recordTemplate: {
        names: recordNames,
        ttl: Math.round(env.durationMs('DNSPROVIDER_RECORD_TTL', '300s', { min: '1s', max: '168h' }) / 1_000),
      },
      commitWaitMs: env.durationMs('PDM_DNS_COMMIT_WAIT', '5s', { min: '0s', max: '1m' }),
      driftIntervalMs: env.durationMs('PDM_DRIFT_INTERVAL', '10m', { min: '1s', max: '24h' }),
      acceptsAnyLocalDomain: testSettings.publicPools ?? false,
      testUrl: testSettings.providerUrl,
      writesZones: env.oneOf('PDM_DNS_WRITES', ['on', 'off'], 'on') === 'on',
      keepsUnknown: env.oneOf('PDM_UNKNOWN_RECORDS', ['reserve', 'ignore'], 'reserve') === 'reserve',
      movesProvider: env.oneOf('PDM_DNS_PROVIDER_MOVE', ['true', 'false'], 'false') === 'true',
    },
    records: readRecords(env),
    recordsUrl: readRecordsUrl(env),
    objectStorage,
    credentials: readCredentials(env, testSettings.validationAttempts),
    domainProof: readDomainProof(env),
    deployments: {
      ...readTerraform(env),
      concurrency: env.integer('PDM_DEPLOYMENT_CONCURRENCY', 2, { min: 1, max: 100 }),
      knownProviders: readKnownProviders(env, objectStorage.provider),
      acceptsTestAddresses: env.oneOf('PDM_ACCEPT_TEST_ADDRESSES', ['true', 'false'], 'false') === 'true',
    },
  }
}

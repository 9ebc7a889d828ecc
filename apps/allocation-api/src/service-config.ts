import { type ConfigIssue, type Env, EnvReader, toFileVariable } from '@pool/runtime/service/env'
import { type CredentialUrls, findPlainCredentials } from '@pool/runtime/service/plain-credentials'
import { readEnvironment } from '@pool/runtime/service/read-environment'
import { findUnknownVariables, type KnownVariables } from '@pool/runtime/service/unknown-variables'
import { type Config, explainShortToken, readConfig } from './config/config.ts'
import { TEST_SETTINGS_VARIABLE } from './config/test-settings.ts'
import { readCaFile } from './credentials/ca-file.ts'
import { type ChosenProvider, providerKinds, readProvider } from './dns/registry.ts'

/** The variables whose values are secrets. Each of them can be read from a file, which `<VARIABLE>_FILE` names. */
export const SECRET_VARIABLES = [
  'PDM_DATABASE_URL',
  'PDM_OPERATOR_TOKENS',
  'PDM_WITNESS_TOKEN',
  'DNSPROVIDER_POWERDNS_API_KEY',
  'DNSPROVIDER_CLOUDFLARE_API_TOKEN',
  'DNSPROVIDER_DYNADOT_API_KEY',
  'DNSPROVIDER_RFC2136_TSIG_SECRET',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
] as const

/** Shorter values occur by chance in any text. */
const MIN_MASKED_LENGTH = 4

/** The secrets in the values of these variables, the longest first: each item of a list, and the password of the database. */
export const findSecrets = (env: Env): readonly string[] => {
  const texts = SECRET_VARIABLES.map(variable => env[variable]?.trim() ?? '')
  const password = /^[^/]*\/\/[^:/@]*:([^@]*)@/.exec(env.PDM_DATABASE_URL?.trim() ?? '')?.[1] ?? ''
  const values = [...texts.flatMap(text => [text, ...text.split(',').map(item => item.trim())]), password]
  const secrets = [...values, decodePassword(password)].filter(value => value.length >= MIN_MASKED_LENGTH)
  return [...new Set(secrets)].toSorted((a, b) => b.length - a.length)
}

const decodePassword = (password: string): string => {
  try {
    return decodeURIComponent(password)
  } catch {
    return password
  }
}

/** For the tests of this repository. A shared environment may contain the first. */
const TEST_VARIABLES: readonly string[] = ['PDM_TEST_DSN', TEST_SETTINGS_VARIABLE]

/** 128 bits in hexadecimal digits. Terraform's module of the witness requires as many characters. */
const ADVISED_TOKEN_LENGTH = 32

export interface ServiceConfig extends Config {
  readonly dnsProvider: ChosenProvider
  /** PEM of additional authorities for the certificate of the object storage; null: the system's only. */
  readonly objectStorageCa: string | null
  /** What Terraform may inherit. */
  readonly env: Env
}

/** Domains that are never delegated in the public DNS (RFC 6761). */
const PRIVATE_DOMAIN = /(?:^|\.)(?:test|localhost|example|invalid)$/

/** The records of the built-in server are not in the public DNS. */
const validateLocalPools = ({ managedDomains, dns }: Config, kind: string): readonly ConfigIssue[] => {
  const pool = managedDomains.find(domain => !PRIVATE_DOMAIN.test(domain))
  if (kind !== 'local' || dns.acceptsAnyLocalDomain || pool === undefined) return []
  const detail = `is local, which publishes ${pool} on this machine only; choose the provider of the pools in DNSPROVIDER_MANAGED_DOMAINS`
  return [{ variable: 'DNSPROVIDER_KIND', detail }]
}

/** Seconds. At Cloudflare, an Enterprise zone has 30 at least, any other zone 60. */
const TTL_RANGES: Readonly<Record<string, { readonly min: number; readonly max: number }>> = {
  cloudflare: { min: 30, max: 86_400 },
}

/** What the provider would reject at each commit. */
const validateTtl = ({ dns }: Config, kind: string): readonly ConfigIssue[] => {
  const range = TTL_RANGES[kind]
  const { ttl } = dns.recordTemplate
  if (!range || (ttl >= range.min && ttl <= range.max)) return []
  return [{ variable: 'DNSPROVIDER_RECORD_TTL', detail: `must be from ${range.min}s to ${range.max}s with ${kind}` }]
}

/** A write of Dynadot replaces the whole domain, and a pool protects only its own writes from that. */
const validateSharedDomains = ({ managedDomains }: Config, { kind, zones }: ChosenProvider): readonly ConfigIssue[] => {
  const used = [...new Set([...managedDomains, ...zones.keys()])].map(pool => zones.get(pool) ?? pool)
  const shared = used.find((zone, i) => used.indexOf(zone) !== i)
  if (kind !== 'dynadot' || shared === undefined) return []
  return [{ variable: 'DNSPROVIDER_ZONES', detail: `must have one pool in the domain ${shared} with dynadot` }]
}

const readVariables = (env: EnvReader) => {
  const config = readConfig(env)
  return { config, dnsProvider: readProvider(env, config.dns.testUrl), objectStorageCa: readCaFile(env) }
}

/** Every variable of this service: those that it reads, whatever the provider. */
const listVariables = (): readonly string[] => {
  const read = providerKinds.flatMap(kind => {
    const env = new EnvReader({ DNSPROVIDER_KIND: kind })
    readVariables(env)
    return [...env.names]
  })
  return [...new Set(read)].filter(name => !TEST_VARIABLES.includes(name))
}

export const VARIABLES = listVariables()

/** No other program has variables with these prefixes, so an unknown one is a mistake. */
export const knownVariables: KnownVariables = {
  prefixes: ['PDM_', 'DNSPROVIDER_', 'OBJECT_STORAGE_'],
  names: [...VARIABLES, ...SECRET_VARIABLES.map(toFileVariable), ...TEST_VARIABLES],
}

/** The whole configuration, or every error in it. */
export const readServiceConfig = (
  variables: Env,
): { readonly config: ServiceConfig } | { readonly issues: readonly ConfigIssue[] } =>
  readEnvironment(variables, { known: knownVariables, secrets: SECRET_VARIABLES }, (env, values) => {
    const { config, dnsProvider, objectStorageCa } = readVariables(env)
    if (env.issues.length === 0)
      env.issues.push(
        ...validateLocalPools(config, dnsProvider.kind),
        ...validateTtl(config, dnsProvider.kind),
        ...validateSharedDomains(config, dnsProvider),
      )
    if (config.requiresTls) env.issues.push(...findPlainCredentials(values, CREDENTIAL_URLS))
    return { ...limitToProvider(config, dnsProvider.kind), dnsProvider, objectStorageCa, env: values }
  })

/** Seconds: the lowest TTL that every zone of the provider has, where it is not 1. */
const MIN_TTLS: Readonly<Record<string, number>> = { cloudflare: 60 }

/** With what the provider has for records of tenants. A domain at Dynadot has too few records for scope `records`. */
const limitToProvider = (config: Config, kind: string): Config => {
  const { records, dns } = config
  const maxScope = kind === 'dynadot' && records.maxScope === 'records' ? 'acme' : records.maxScope
  const challengeTtl = MIN_TTLS[kind] ?? 1
  const minTtlSeconds = Math.max(records.minTtlSeconds, challengeTtl)
  const recordTemplate = { ...dns.recordTemplate, challengeTtl }
  return { ...config, records: { ...records, maxScope, minTtlSeconds }, dns: { ...dns, recordTemplate } }
}

/** Each URL to which the service sends data or the credential in the second variable. */
const CREDENTIAL_URLS: CredentialUrls = {
  databases: ['PDM_DATABASE_URL'],
  urls: [
    ['PDM_WITNESS_URL', 'PDM_WITNESS_TOKEN'],
    ['DNSPROVIDER_POWERDNS_URL', 'DNSPROVIDER_POWERDNS_API_KEY'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_HEADERS'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_HEADERS'],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_HEADERS'],
  ],
}

/** What is valid in the environment, but probably a mistake. No detail quotes a value. */
export const findConfigWarnings = (
  env: Env,
  { operator, trustedProxies }: Pick<Config, 'operator' | 'trustedProxies'>,
): readonly ConfigIssue[] => {
  const hasShortToken = operator?.tokens.some(token => token.length < ADVISED_TOKEN_LENGTH) ?? false
  const everyPeer =
    'contains every address, so any client can claim to be any other; list the networks of your proxies only'
  return [
    ...findUnknownVariables(env, knownVariables),
    ...findPlainCredentials(env, CREDENTIAL_URLS),
    ...(hasShortToken ? [{ variable: 'PDM_OPERATOR_TOKENS', detail: explainShortToken(ADVISED_TOKEN_LENGTH) }] : []),
    ...(trustedProxies.some(({ prefix }) => prefix === 0)
      ? [{ variable: 'PDM_TRUSTED_PROXIES', detail: everyPeer }]
      : []),
  ]
}

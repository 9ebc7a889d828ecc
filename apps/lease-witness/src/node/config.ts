import { parseConnectionString } from '@pool/runtime/database/connection-string'
import { type ConfigIssue, type Env, type EnvReader, toFileVariable } from '@pool/runtime/service/env'
import { findPlainCredentials } from '@pool/runtime/service/plain-credentials'
import { readEnvironment } from '@pool/runtime/service/read-environment'
import { findUnknownVariables, type KnownVariables } from '@pool/runtime/service/unknown-variables'
import { findSettingsIssues, SETTINGS, type WitnessSettings } from '../settings.ts'

export interface Config {
  /** 0: a free port. */
  readonly port: number
  /** The IP address that the listener binds to; null: every address of the machine. */
  readonly listenAddress: string | null
  readonly database: {
    readonly url: string
    /** Leads to the server itself, where `url` may lead to a pooler. */
    readonly listenUrl: string
    readonly usesTls: boolean
    readonly poolSize: number
    readonly timeoutMs: number
  }
  /** Whether the witness serves although a promoted standby may lack acknowledged writes. */
  readonly allowsLostWrites: boolean
  /** Milliseconds between the signal to stop and the end of the listener. */
  readonly drainMs: number
  /** What is valid, but probably a mistake. */
  readonly warnings: readonly ConfigIssue[]
  readonly keepAliveMs: number
  /** What the worker gets as its bindings. */
  readonly settings: WitnessSettings
}

export const URL_VARIABLE = 'WITNESS_DATABASE_URL'
export const LISTEN_URL_VARIABLE = 'WITNESS_LISTEN_URL'

/** The variables whose values are secrets. Each of them can be read from a file, which `<VARIABLE>_FILE` names. */
export const SECRET_VARIABLES = [URL_VARIABLE, LISTEN_URL_VARIABLE, 'BEARER_TOKENS_CSV', 'TOKEN_POLICIES'] as const

/** Every variable of the witness on Postgres. */
const VARIABLES: readonly string[] = [
  URL_VARIABLE,
  LISTEN_URL_VARIABLE,
  ...SETTINGS,
  'PORT',
  'WITNESS_ALLOW_LOST_WRITES',
  'WITNESS_DATABASE_POOL_SIZE',
  'WITNESS_DATABASE_TIMEOUT',
  'WITNESS_DRAIN_DELAY',
  'WITNESS_KEEP_ALIVE_TIMEOUT',
  'WITNESS_LISTEN_ADDRESS',
  'WITNESS_REQUIRE_TLS',
]

export const knownVariables: KnownVariables = {
  prefixes: ['WITNESS_'],
  names: [...VARIABLES, ...SECRET_VARIABLES.map(toFileVariable)],
}

const readUrl = (env: EnvReader, variable: string, url: string): boolean => {
  const connection = url === '' ? null : parseConnectionString(url)
  if (connection && 'issue' in connection) env.addIssue(variable, connection.issue)
  return connection !== null && 'tls' in connection && connection.tls !== null
}

export const readDatabaseUrl = (env: EnvReader): { readonly url: string; readonly usesTls: boolean } => {
  const url = env.required(URL_VARIABLE, 'postgres://user:password@host:5432/database')
  return { url, usesTls: readUrl(env, URL_VARIABLE, url) }
}

/** The configuration, or everything that is wrong with it. */
export const readConfig = (variables: Env): { readonly config: Config } | { readonly issues: readonly ConfigIssue[] } =>
  readEnvironment(variables, { known: knownVariables, secrets: SECRET_VARIABLES }, (env, values) => {
    const { url, usesTls } = readDatabaseUrl(env)
    const listenUrl = env.text(LISTEN_URL_VARIABLE) ?? url
    if (listenUrl !== url) readUrl(env, LISTEN_URL_VARIABLE, listenUrl)
    if (!env.text('BEARER_TOKENS_CSV') && !env.text('TOKEN_POLICIES')) {
      env.addIssue('BEARER_TOKENS_CSV', 'or TOKEN_POLICIES is required: without a token, every request is rejected')
    }
    const plain = findPlainCredentials(values, { databases: [URL_VARIABLE, LISTEN_URL_VARIABLE], urls: [] })
    const requiresTls = env.oneOf('WITNESS_REQUIRE_TLS', ['true', 'false'], 'false') === 'true'
    if (requiresTls) env.issues.push(...plain)
    for (const { variable, detail } of findSettingsIssues(values)) env.addIssue(variable, detail)
    return {
      port: env.integer('PORT', 8080, { min: 0, max: 65_535 }),
      listenAddress: env.address('WITNESS_LISTEN_ADDRESS'),
      database: {
        url,
        listenUrl,
        usesTls,
        poolSize: env.integer('WITNESS_DATABASE_POOL_SIZE', 4, { min: 1, max: 1_000 }),
        timeoutMs: env.durationMs('WITNESS_DATABASE_TIMEOUT', '5s', { min: '100ms', max: '1m' }),
      },
      allowsLostWrites: env.oneOf('WITNESS_ALLOW_LOST_WRITES', ['true', 'false'], 'false') === 'true',
      drainMs: env.durationMs('WITNESS_DRAIN_DELAY', '0s', { min: '0s', max: '10s' }),
      warnings: [...plain, ...findUnknownVariables(variables, knownVariables)],
      keepAliveMs: env.durationMs('WITNESS_KEEP_ALIVE_TIMEOUT', '75s', { min: '1s', max: '1h' }),
      settings: values,
    }
  })

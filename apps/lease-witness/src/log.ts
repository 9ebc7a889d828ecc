import { redacted } from '@pool/contract'
import { parseTokenList } from './http/domain/token-list.ts'

export const LOG_LEVELS = ['error', 'info', 'debug'] as const
export type WitnessLogLevel = (typeof LOG_LEVELS)[number]

export interface LogSettings {
  /** `error`, `info` or `debug`; any other value means `info`. */
  readonly LOG_LEVEL?: string
  /** The allow-list, whose tokens are redacted. */
  readonly BEARER_TOKENS_CSV?: string
}

const parseLevel = ({ LOG_LEVEL }: LogSettings): WitnessLogLevel =>
  LOG_LEVELS.find(level => level === LOG_LEVEL?.trim().toLowerCase()) ?? 'info'

export const isLogged = (settings: LogSettings, level: WitnessLogLevel): boolean =>
  LOG_LEVELS.indexOf(level) <= LOG_LEVELS.indexOf(parseLevel(settings))

/** A shorter token is a word that occurs in log lines by accident, and is too short to be a secret. */
const MIN_REDACTED_LENGTH = 8

const isSecret = (token: string): boolean => token.length >= MIN_REDACTED_LENGTH

/** Per isolate: a new secret is a new deployment with new isolates. */
let cache: { readonly csv: string | undefined; readonly tokens: readonly string[] } = { csv: undefined, tokens: [] }

/** Longest first, because one token may be the prefix of another. */
const toSecrets = (csv: string | undefined, more: readonly string[]): readonly string[] => {
  if (cache.csv !== csv) cache = { csv, tokens: parseTokenList(csv).filter(isSecret) }
  return [...cache.tokens, ...more.filter(isSecret)].sort((a, b) => b.length - a.length)
}

/**
 * A client may send a token by mistake as its slot, its holder or a header. Replaces tokens in values, not in the line: a
 * token can be a part of an escape sequence or of a number, and the line must stay JSON.
 */
const redact = (line: Readonly<Record<string, unknown>>, secrets: readonly string[]): string =>
  JSON.stringify(line, (_, value: unknown) =>
    typeof value === 'string' ? secrets.reduce((text, secret) => text.replaceAll(secret, redacted), value) : value,
  )

// biome-ignore lint/suspicious/noConsole: the Workers runtime collects logs from the console only
let writeLine = (line: string): void => console.log(line)

/** Replaces the console, for a host that has a cheaper output. */
export const setLogOutput = (write: (line: string) => void): void => {
  writeLine = write
}

/**
 * Writes one line of JSON. The caller chooses each field; request headers are never logged as a whole. `secrets` are
 * texts that the line must not contain, in addition to the tokens of the settings.
 */
export const log = (
  settings: LogSettings,
  level: WitnessLogLevel,
  fields: Readonly<Record<string, unknown>>,
  secrets: readonly string[] = [],
): void => {
  if (!isLogged(settings, level)) return
  const line = { level, time: new Date().toISOString(), service: 'lease-witness', ...fields }
  writeLine(redact(line, toSecrets(settings.BEARER_TOKENS_CSV, secrets)))
}

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

const escapeJson = (text: string): string => JSON.stringify(text).slice(1, -1)

/** The tokens as they occur in a line of JSON. Longest first, because one token may be the prefix of another. */
const toRedactedTexts = (csv: string | undefined): string[] =>
  parseTokenList(csv)
    .filter(token => token.length >= MIN_REDACTED_LENGTH)
    .sort((a, b) => b.length - a.length)
    .map(escapeJson)

/** Per isolate: a new secret is a new deployment with new isolates. */
let cache: { readonly csv: string | undefined; readonly texts: readonly string[] } = { csv: undefined, texts: [] }

/** A client may send a token by mistake as its slot, its holder or a header. */
const redact = (line: string, { BEARER_TOKENS_CSV: csv }: LogSettings): string => {
  if (cache.csv !== csv) cache = { csv, texts: toRedactedTexts(csv) }
  return cache.texts.reduce((text, token) => text.replaceAll(token, redacted), line)
}

/** Writes one line of JSON. The caller chooses each field; request headers are never logged as a whole. */
export const log = (settings: LogSettings, level: WitnessLogLevel, fields: Readonly<Record<string, unknown>>): void => {
  if (!isLogged(settings, level)) return
  const line = { level, time: new Date().toISOString(), service: 'lease-witness', ...fields }
  // biome-ignore lint/suspicious/noConsole: the Workers runtime collects logs from the console only
  console.log(redact(JSON.stringify(line), settings))
}

import { redacted } from '@pool/contract'
import { tokensOf } from './http/domain/bearer-tokens.ts'

export const logLevels = ['error', 'info', 'debug'] as const
export type LogLevel = (typeof logLevels)[number]

export interface LogSettings {
  /** `error`, `info` or `debug`; anything else is `info`. */
  readonly LOG_LEVEL?: string
  /** The allow-list, so that none of it gets into a line. */
  readonly BEARER_TOKENS_CSV?: string
}

const levelOf = ({ LOG_LEVEL }: LogSettings): LogLevel =>
  logLevels.find(level => level === LOG_LEVEL?.trim().toLowerCase()) ?? 'info'

export const isLogged = (settings: LogSettings, level: LogLevel): boolean =>
  logLevels.indexOf(level) <= logLevels.indexOf(levelOf(settings))

/** Shorter ones are words that a line holds by chance; nothing that short keeps anybody out. */
const SHORTEST_MASKED = 8

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)

/** As a line of JSON holds them, the longest first: one may begin with another. */
const maskedTokensOf = (csv: string | undefined): string[] =>
  tokensOf(csv)
    .filter(token => token.length >= SHORTEST_MASKED)
    .sort((a, b) => b.length - a.length)
    .map(escaped)

/** Kept for the allow-list that the isolate runs with: a new secret is a new deployment. */
let kept: { readonly csv: string | undefined; readonly tokens: readonly string[] } = { csv: undefined, tokens: [] }

/** What callers choose (a slot, a holder, a header) may by mistake be a token of theirs. */
const masked = (line: string, { BEARER_TOKENS_CSV: csv }: LogSettings): string => {
  if (kept.csv !== csv) kept = { csv, tokens: maskedTokensOf(csv) }
  return kept.tokens.reduce((text, token) => text.replaceAll(token, redacted), line)
}

/** One line of JSON. `fields` are chosen one by one and hold no header as it came. */
export const log = (settings: LogSettings, level: LogLevel, fields: Readonly<Record<string, unknown>>): void => {
  if (!isLogged(settings, level)) return
  const line = { level, time: new Date().toISOString(), service: 'lease-witness', ...fields }
  // biome-ignore lint/suspicious/noConsole: the only way out of a worker that its runtime collects
  console.log(masked(JSON.stringify(line), settings))
}

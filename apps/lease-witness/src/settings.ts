import { WAIT } from '@pool/contract/lease'
import { findUnknownVariables, type UnknownVariable } from '@pool/runtime/service/unknown-variables'
import { isShortToken, MIN_TOKEN_LENGTH, parseTokenList } from './http/domain/token-list.ts'
import { parseTokenPolicies } from './http/domain/token-policies.ts'
import { parseMaxWaitSeconds } from './lease/request.ts'
import { LOG_LEVELS, type LogSettings } from './log.ts'

/** The variables and secrets of the witness, the same on every host. Texts, as the environment has them. */
export interface WitnessSettings extends LogSettings {
  /** Tokens with full power, separated by commas. Without these and policies, every request is rejected. */
  readonly BEARER_TOKENS_CSV?: string
  /** A JSON array of tokens with limited power: their hashes, and what they may do. */
  readonly TOKEN_POLICIES?: string
  /** The default request limit of a token, per isolate or process; 0: none. */
  readonly MAX_REQUESTS_PER_MINUTE?: string
  /** The longest wait that is granted: 1 to 60 s; any other value means 25 s. */
  readonly MAX_WAIT_SECONDS?: string
}

/** Their names. */
export const SETTINGS = [
  'BEARER_TOKENS_CSV',
  'TOKEN_POLICIES',
  'MAX_REQUESTS_PER_MINUTE',
  'MAX_WAIT_SECONDS',
  'LOG_LEVEL',
] as const satisfies readonly (keyof WitnessSettings)[]

/** Twice what a controller needs that renews 10,000 leases every 10 s, one by one. */
const DEFAULT_MAX_REQUESTS_PER_MINUTE = 120_000

/** Undefined: the text is not a whole number. */
const parseCount = (text: string | undefined): number | undefined => {
  const trimmed = text?.trim() ?? ''
  if (trimmed === '') return DEFAULT_MAX_REQUESTS_PER_MINUTE
  return /^\d{1,8}$/.test(trimmed) ? Number(trimmed) : undefined
}

/** An invalid value means the default: a deployed worker cannot refuse to start. */
export const parseMaxRequestsPerMinute = ({ MAX_REQUESTS_PER_MINUTE }: WitnessSettings): number =>
  parseCount(MAX_REQUESTS_PER_MINUTE) ?? DEFAULT_MAX_REQUESTS_PER_MINUTE

export interface SettingsIssue {
  readonly variable: keyof WitnessSettings
  readonly detail: string
}

const SHORT_TOKEN: SettingsIssue = {
  variable: 'BEARER_TOKENS_CSV',
  detail: `has a token of fewer than ${MIN_TOKEN_LENGTH} characters, which can be guessed; replace it by the output of: openssl rand -hex 32`,
}

/** A client could not send it in a header, so all its requests would be rejected without an explanation. */
const UNSENDABLE_TOKEN: SettingsIssue = {
  variable: 'BEARER_TOKENS_CSV',
  detail: 'must be tokens of printable ASCII without spaces, separated by commas',
}

const findListIssues = (tokens: readonly string[]): readonly SettingsIssue[] => {
  if (!tokens.every(token => /^[!-~]+$/.test(token))) return [UNSENDABLE_TOKEN]
  return tokens.some(isShortToken) ? [SHORT_TOKEN] : []
}

/**
 * What is wrong with the settings. A process that can refuse to start does so. A deployed worker logs it, rejects these
 * tokens, and uses the default of any other setting.
 */
export const findSettingsIssues = (settings: WitnessSettings): readonly SettingsIssue[] => {
  const issues: SettingsIssue[] = []
  const level = settings.LOG_LEVEL?.trim().toLowerCase() || 'info'
  if (!LOG_LEVELS.some(known => known === level))
    issues.push({ variable: 'LOG_LEVEL', detail: `must be one of ${LOG_LEVELS.join(', ')}` })
  issues.push(...findListIssues(parseTokenList(settings.BEARER_TOKENS_CSV)))
  const { errors } = parseTokenPolicies(settings.TOKEN_POLICIES)
  if (errors.length > 0) issues.push({ variable: 'TOKEN_POLICIES', detail: errors.join('; ') })
  if (parseCount(settings.MAX_REQUESTS_PER_MINUTE) === undefined)
    issues.push({ variable: 'MAX_REQUESTS_PER_MINUTE', detail: 'must be a whole number; 0 means no limit' })
  if (parseMaxWaitSeconds(settings.MAX_WAIT_SECONDS) === undefined)
    issues.push({ variable: 'MAX_WAIT_SECONDS', detail: `must be a whole number from ${WAIT.min} to ${WAIT.max}` })
  return issues
}

/** Every variable of the worker. */
export const WORKER_VARIABLES: readonly string[] = [...SETTINGS, 'DRAIN', 'JURISDICTION', 'LOCATION_HINTS']

/** The variables of a worker that have no effect, probably by mistake. `env` also has its other bindings. */
export const findIgnoredVariables = (env: object): readonly UnknownVariable[] => {
  const texts = Object.fromEntries(Object.entries(env).filter(([, value]) => typeof value === 'string'))
  const isDrainValid = ['', 'true', 'false'].includes(texts.DRAIN ?? '')
  return [
    ...(isDrainValid ? [] : [{ variable: 'DRAIN', detail: 'must be true or false' }]),
    ...findUnknownVariables(texts, { prefixes: [], names: WORKER_VARIABLES }),
  ]
}

import type { Operation } from '@pool/contract'
import type * as z from 'zod'
import type { RepeatRule, RetryPolicy } from './domain/retry.ts'
import type { ClientHooks } from './hooks.ts'
import type { Timing } from './timing.ts'

/** What a client knows of its service. */
export interface Service {
  readonly operations: Readonly<Record<string, Operation>>
  /** The schema of the errors that every operation can send. */
  readonly problem: z.ZodType
  /** Whether the service sends this error for an operation. Otherwise the address is wrong: of another service, or with a wrong path. */
  readonly isOwn: (problem: { readonly error: string; readonly detail?: string | undefined }) => boolean
}

/** The settings of a client. */
export interface ClientOptions {
  /** Where the service listens, such as `https://allocation.example`. A path is kept as a prefix. It has no segment that
   * the client itself adds, such as `/api` or `/lease`. */
  readonly baseUrl: string | URL
  /** The bearer token. A function is called before every request, so that a new token takes effect at once. */
  readonly token?: string | (() => string | Promise<string>)
  /** Added to every request, for a proxy in front of the service. The values are treated as secrets. */
  readonly headers?: Readonly<Record<string, string>>
  /** `globalThis.fetch` by default. It must not retry. */
  readonly fetch?: typeof fetch
  readonly retry?: Partial<RetryPolicy>
  /** Milliseconds for a call with its retries: 60,000 by default. A few slow operations have more. */
  readonly deadlineMs?: number
  /** Milliseconds until a response begins: 15,000 by default. A few slow operations have more. */
  readonly attemptTimeoutMs?: number
  readonly hooks?: ClientHooks
  /** Tests pass their own clock. */
  readonly timing?: Timing
}

/** The settings of one call. They take precedence over those of the client. */
export interface CallOptions {
  /** Ends the call, pauses and streams included, with the reason of the signal. */
  readonly signal?: AbortSignal | undefined
  /** Milliseconds for the call with its retries. Of a stream: until it begins. */
  readonly deadlineMs?: number | undefined
  /** Milliseconds until a response begins. */
  readonly attemptTimeoutMs?: number | undefined
}

/** How often and for how long an operation is called, unless the caller has other limits. */
export interface CallRule {
  readonly repeat: RepeatRule
  readonly deadlineMs?: number
  readonly attemptTimeoutMs?: number
}

const KINDS = {
  /** Whoever uses it validates it. */
  any: [() => true, ''],
  flag: [value => typeof value === 'boolean', 'true or false'],
  function: [value => typeof value === 'function', 'a function'],
  milliseconds: [value => typeof value === 'number' && value >= 0, 'a number of milliseconds'],
  count: [value => Number.isInteger(value) && Number(value) > 0, 'a whole number of at least 1'],
  object: [value => typeof value === 'object' && value !== null && !Array.isArray(value), 'an object'],
  signal: [value => value instanceof AbortSignal, 'an AbortSignal'],
  token: [value => typeof value === 'string' || typeof value === 'function', 'text, or a function that returns it'],
} satisfies Record<string, readonly [isValid: (value: unknown) => boolean, what: string]>

/** The options of a type, and of which kind each one is. */
export type OptionKinds<Options> = { readonly [Name in keyof Options]-?: keyof typeof KINDS }

/**
 * Throws a TypeError for what is not an object of options, for an option that would be ignored, and for a value of another kind.
 * The types say the same, but not to JavaScript. No value is quoted.
 */
export const checkOptions = <Options extends object>(
  owner: string,
  options: Options,
  kinds: OptionKinds<Options>,
): void => {
  const names = Object.keys(kinds).join(', ')
  if (!KINDS.object[0](options) || options instanceof AbortSignal)
    throw new TypeError(`${owner} needs an object with its options: ${names}.`)
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(kinds, name)) throw new TypeError(`${owner} has no option ${name}; it has ${names}.`)
    const [isValid, what] = KINDS[kinds[name as keyof Options]]
    if (value !== undefined && !isValid(value)) throw new TypeError(`${owner}: ${name} must be ${what}.`)
  }
}

export const CALL_OPTIONS: OptionKinds<CallOptions> = {
  signal: 'signal',
  deadlineMs: 'milliseconds',
  attemptTimeoutMs: 'milliseconds',
}

/** Throws a TypeError if an option cannot be used. */
export const checkClientOptions = (options: ClientOptions): void => {
  checkOptions('The client', options, {
    baseUrl: 'any',
    token: 'token',
    headers: 'object',
    fetch: 'function',
    retry: 'object',
    deadlineMs: 'milliseconds',
    attemptTimeoutMs: 'milliseconds',
    hooks: 'object',
    timing: 'object',
  })
  const { retry = {}, hooks = {} } = options
  checkOptions('retry', retry, { maxAttempts: 'count', minBackoffMs: 'milliseconds', maxBackoffMs: 'milliseconds' })
  checkOptions('hooks', hooks, {
    onAttempt: 'function',
    onAttemptEnd: 'function',
    onCallEnd: 'function',
    traceCall: 'function',
  })
}

export const DEFAULT_DEADLINE_MS = 60_000
export const DEFAULT_ATTEMPT_TIMEOUT_MS = 15_000

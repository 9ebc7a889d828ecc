import type { RepeatRule, RetryPolicy } from './domain/retry.ts'
import type { ClientHooks } from './hooks.ts'
import type { Timing } from './timing.ts'

/** The settings of a client. */
export interface ClientOptions {
  /** Where the service listens, such as `https://allocation.example`. A path is kept as a prefix. */
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

/** Throws a TypeError for a time limit that would end every call at once. */
export const validateLimits = (limits: Pick<CallOptions, 'deadlineMs' | 'attemptTimeoutMs'>): void => {
  for (const name of ['deadlineMs', 'attemptTimeoutMs'] as const) {
    const ms: unknown = limits[name]
    if (ms !== undefined && !(typeof ms === 'number' && ms >= 0)) {
      throw new TypeError(`${name} must be a number of milliseconds.`)
    }
  }
}

export const DEFAULT_DEADLINE_MS = 60_000
export const DEFAULT_ATTEMPT_TIMEOUT_MS = 15_000

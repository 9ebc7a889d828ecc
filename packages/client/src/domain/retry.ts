/**
 * When a request may be sent again.
 *
 * - `repeatable`: a read, or a write that changes nothing when it is repeated.
 * - `under-key`: a write that the service executes once under an Idempotency-Key.
 * - `if-rejected`: only after a response that says that the request had no effect.
 * - `never`: the caller decides. A lease is read and compared before it is written again.
 */
export type RepeatRule = 'repeatable' | 'under-key' | 'if-rejected' | 'never'

/** Why an attempt failed. `no-response` includes an attempt that took too long. */
export type AttemptFailure =
  | { readonly kind: 'no-response'; readonly reasonCode?: string | undefined }
  | { readonly kind: 'response'; readonly status: number; readonly code?: string; readonly retryAfterMs?: number }

export interface RetryPolicy {
  /** The largest number of requests for a call, the first included. */
  readonly maxAttempts: number
  /** The pause before a retry is random, up to this many milliseconds. The limit doubles with every attempt. */
  readonly minBackoffMs: number
  /** The limit of the pause stays below this. `Retry-After` can exceed it. */
  readonly maxBackoffMs: number
}

export const DEFAULT_RETRY_POLICY: RetryPolicy = { maxAttempts: 5, minBackoffMs: 200, maxBackoffMs: 10_000 }

/** Too many requests, and what a service or a proxy in front of it sends while it cannot serve. A 500 is a bug. */
const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504])

/** Codes of a 503 that documents that the request had no effect. */
const NO_EFFECT_CODES: ReadonlySet<string> = new Set([
  'database-read-only',
  'too-many-readers',
  'provisioning-unavailable',
  'object-storage-unavailable',
  'draining',
])

/** Codes of the runtimes for a connection that was never made: no request was sent on it. */
const NOT_SENT_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** Whether a request that failed in this way may nevertheless have taken effect. */
export const mayHaveTakenEffect = (failure: AttemptFailure): boolean =>
  failure.kind === 'no-response'
    ? !NOT_SENT_CODES.has(failure.reasonCode ?? '')
    : failure.status >= 500 && !NO_EFFECT_CODES.has(failure.code ?? '')

const isRepeatable = (rule: RepeatRule, failure: AttemptFailure): boolean => {
  if (rule === 'never') return false
  if (failure.kind === 'response' && !TRANSIENT_STATUSES.has(failure.status)) return false
  return rule === 'if-rejected' ? !mayHaveTakenEffect(failure) : true
}

export interface RetryQuestion {
  readonly rule: RepeatRule
  readonly failure: AttemptFailure
  /** The number of requests that were sent, at least 1. */
  readonly attempts: number
  readonly policy: RetryPolicy
  /** Milliseconds until the deadline of the call. */
  readonly remainingMs: number
  /** From 0 to 1. */
  readonly random: number
}

/**
 * Returns the pause before the next request in milliseconds; null: there is none. The pause is random up to a limit that
 * doubles (full jitter), and is added to `Retry-After`, so that clients that were rejected at the same moment do not
 * return at the same moment. There is no retry that would start after the deadline.
 */
export const planRetry = ({ rule, failure, attempts, policy, remainingMs, random }: RetryQuestion): number | null => {
  if (attempts >= policy.maxAttempts || !isRepeatable(rule, failure)) return null
  const limit = Math.min(policy.maxBackoffMs, policy.minBackoffMs * 2 ** (attempts - 1))
  const pause = random * limit + (failure.kind === 'response' ? (failure.retryAfterMs ?? 0) : 0)
  return pause < remainingMs ? pause : null
}

/** Milliseconds of a Retry-After (RFC 9110 section 10.2.3), in seconds or as a date; undefined: absent or invalid. */
export const parseRetryAfter = (header: string | null, nowMs: number): number | undefined => {
  if (header === null) return undefined
  if (/^[0-9]{1,9}$/.test(header)) return Number(header) * 1_000
  const date = Date.parse(header)
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs)
}

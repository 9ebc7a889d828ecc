import { backoffMs } from './backoff.ts'

/**
 * Whether the provider may be called. Times are milliseconds of a monotonic clock.
 *
 * Closed: every call is made. After the third consecutive failure, or when the provider asks for a pause, the circuit is
 * open until `retryAt`: no call is made. Then it is half-open: a single call finds out whether the provider is back.
 */
export interface CircuitBreaker {
  /** Consecutive failures. Calls that fail at the same time count once. */
  readonly failures: number
  readonly retryAt: number
  readonly isOpen: boolean
}

export const CLOSED: CircuitBreaker = { failures: 0, retryAt: 0, isOpen: false }

const FAILURE_THRESHOLD = 3

/** A provider that recovers is noticed within this time and its jitter. */
const MAX_OPEN_MS = 10_000

/** The longest Retry-After that is accepted: a mistake of the provider must not stop the service for days. */
const MAX_RETRY_AFTER_MS = 3_600_000

export const msUntilRetry = ({ retryAt }: CircuitBreaker, now: number): number => Math.max(0, retryAt - now)

/** Milliseconds until the open circuit becomes half-open; 0 if a call may be made. */
export const openMs = (breaker: CircuitBreaker, now: number): number =>
  breaker.isOpen ? msUntilRetry(breaker, now) : 0

/** `random` is from 0 to 1. */
export const afterFailure = (
  breaker: CircuitBreaker,
  { now, retryAfterMs, random }: { now: number; retryAfterMs?: number | undefined; random: number },
): CircuitBreaker => {
  const requested = retryAfterMs === undefined ? 0 : now + Math.min(retryAfterMs, MAX_RETRY_AFTER_MS)
  const isSameFailure = now < breaker.retryAt
  const failures = isSameFailure ? breaker.failures : breaker.failures + 1
  const retryAt = isSameFailure ? breaker.retryAt : now + backoffMs(failures, random, MAX_OPEN_MS)
  return {
    failures,
    retryAt: Math.max(retryAt, requested),
    isOpen: breaker.isOpen || requested > now || failures >= FAILURE_THRESHOLD,
  }
}

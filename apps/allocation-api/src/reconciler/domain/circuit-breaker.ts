import { pauseMs } from './backoff.ts'

/**
 * Whether the provider may be called. Times are milliseconds of a clock that never goes back.
 *
 * What failed is tried again at `retryAt`, later after each failure in a row. From the third on, or when the provider
 * asked for it, the breaker is open until then: nothing is asked, and then a single call finds out whether it is back.
 */
export interface Breaker {
  /** In a row. Calls that were under way together count once. */
  readonly failures: number
  readonly retryAt: number
  readonly isOpen: boolean
}

export const closed: Breaker = { failures: 0, retryAt: 0, isOpen: false }

const OPENS_AT = 3

/** A provider that comes back is noticed within this time, and a fifth of it. */
const LONGEST_PAUSE_MS = 10_000

/** What a provider may ask for at the most (Retry-After): a mistake there must not stop us for days. */
const LONGEST_RETRY_AFTER_MS = 3_600_000

export const pauseOf = ({ retryAt }: Breaker, now: number): number => Math.max(0, retryAt - now)

/** Milliseconds for which nothing may be asked; 0: something may. */
export const heldBackMs = (breaker: Breaker, now: number): number => (breaker.isOpen ? pauseOf(breaker, now) : 0)

/** `random` is from 0 to 1. */
export const afterFailure = (
  breaker: Breaker,
  { now, retryAfterMs, random }: { now: number; retryAfterMs?: number | undefined; random: number },
): Breaker => {
  const asked = retryAfterMs === undefined ? 0 : now + Math.min(retryAfterMs, LONGEST_RETRY_AFTER_MS)
  const isSame = now < breaker.retryAt
  const failures = isSame ? breaker.failures : breaker.failures + 1
  const retryAt = isSame ? breaker.retryAt : now + pauseMs(failures, random, LONGEST_PAUSE_MS)
  return {
    failures,
    retryAt: Math.max(retryAt, asked),
    isOpen: breaker.isOpen || asked > now || failures >= OPENS_AT,
  }
}

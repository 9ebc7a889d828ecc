import type { RateLimitDecision, RateLimiter } from '../lib/rate-limiter.ts'
import { callerKeyOf } from './domain/rate-limit-key.ts'
import type { Verdict } from './domain/result.ts'

export type ValidationOutcome = Verdict | Exclude<RateLimitDecision, { kind: 'allowed' }>

export interface ValidateDependencies<Credentials> {
  readonly check: (credentials: Credentials, signal?: AbortSignal) => Promise<Verdict>
  readonly attempts: RateLimiter
  /** Milliseconds, of a clock that never goes back. */
  readonly now: () => number
  readonly onOutcome: (outcome: ValidationOutcome) => void
}

export type Validate<Credentials> = (
  credentials: Credentials,
  /** The network address of the caller. */
  address: string | null,
  signal?: AbortSignal,
) => Promise<ValidationOutcome>

/**
 * Checks well-formed credentials at their provider, within the caller's budget: without one, this service would let
 * anybody try keys from its address as fast as they like.
 */
export const validate =
  <Credentials>({ check, attempts, now, onOutcome }: ValidateDependencies<Credentials>): Validate<Credentials> =>
  async (credentials, address, signal) => {
    const attempt = attempts(callerKeyOf(address), now())
    const outcome = attempt.kind === 'allowed' ? await check(credentials, signal) : attempt
    onOutcome(outcome)
    return outcome
  }

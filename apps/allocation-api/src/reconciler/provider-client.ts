import type { ApplyResult, ReadResult, Unavailable } from '../dns/domain/result.ts'
import type { RecordChange } from '../dns/domain/rrset.ts'
import type { DnsProvider } from '../dns/provider.ts'
import { afterFailure, type CircuitBreaker, CLOSED, msUntilRetry, openMs } from './domain/circuit-breaker.ts'

type Operation = 'read' | 'apply'

export interface ProviderCallObserver {
  onProviderCall(operation: Operation, outcome: 'done' | 'rejected' | 'unavailable', seconds: number): void
  onError(event: 'dns provider threw an unexpected error', error: unknown): void
}

export interface ProviderClientOptions {
  readonly provider: Pick<DnsProvider, 'read' | 'apply'>
  /** Milliseconds that one call may take. */
  readonly timeoutMs: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** From 0 to 1. */
  readonly random: () => number
  readonly observer: ProviderCallObserver
}

/** The pause for the calls that are rejected while the call of a half-open circuit is in flight. */
const HALF_OPEN_RETRY_MS = 500

/**
 * Calls the provider with a timeout, which holds even if the provider ignores its signal, and behind a circuit breaker.
 * `unavailable` results have `retryAfterMs` unless they are of one zone only.
 */
export class ProviderClient {
  readonly #options: ProviderClientOptions
  #breaker: CircuitBreaker = CLOSED
  /** The circuit is half-open and its one call is in flight. */
  #isHalfOpenCallInFlight = false
  #lastReason = ''

  constructor(options: ProviderClientOptions) {
    this.#options = options
  }

  read(zone: string, owners: readonly string[] | 'all'): Promise<ReadResult> {
    return this.#call('read', async signal => this.#options.provider.read(zone, owners, signal))
  }

  apply(zone: string, changes: readonly RecordChange[]): Promise<ApplyResult> {
    return this.#call('apply', async signal => this.#options.provider.apply(zone, changes, signal))
  }

  isCircuitOpen(): boolean {
    return openMs(this.#breaker, this.#options.now()) > 0
  }

  async #call<Result extends ReadResult | ApplyResult>(
    operation: Operation,
    run: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result | Unavailable> {
    const remainingMs = openMs(this.#breaker, this.#options.now())
    if (remainingMs > 0 || this.#isHalfOpenCallInFlight) return this.#rejectCall(remainingMs)
    const isHalfOpen = this.#breaker.isOpen
    this.#isHalfOpenCallInFlight = isHalfOpen
    const startedAt = performance.now()
    const result = await this.#runWithTimeout(run)
    if (isHalfOpen) this.#isHalfOpenCallInFlight = false
    const hasRejections = result.kind === 'applied' && result.rejected.length > 0
    const outcome = result.kind === 'unavailable' ? 'unavailable' : hasRejections ? 'rejected' : 'done'
    this.#options.observer.onProviderCall(operation, outcome, (performance.now() - startedAt) / 1_000)
    return this.#updateBreaker(result)
  }

  #rejectCall(remainingMs: number): Unavailable {
    const retryAfterMs = Math.max(remainingMs, HALF_OPEN_RETRY_MS)
    const reason = `${this.#lastReason} Next attempt in ${Math.ceil(retryAfterMs / 1_000)} s.`
    return { kind: 'unavailable', reason, retryAfterMs }
  }

  async #runWithTimeout<Result>(run: (signal: AbortSignal) => Promise<Result>): Promise<Result | Unavailable> {
    const { timeoutMs, observer } = this.#options
    const signal = AbortSignal.timeout(timeoutMs)
    const timedOut = new Promise<Unavailable>(resolve => {
      const reason = `The DNS provider did not answer within ${timeoutMs / 1_000} s.`
      signal.addEventListener('abort', () => resolve({ kind: 'unavailable', reason }))
    })
    return Promise.race([run(signal), timedOut]).catch((error: unknown): Unavailable => {
      observer.onError('dns provider threw an unexpected error', error)
      // Most likely caused by what this call sent, so it must not block other zones.
      const reason = 'Internal error calling the DNS provider; see the log.'
      return { kind: 'unavailable', reason, scope: 'zone' }
    })
  }

  #updateBreaker<Result extends ReadResult | ApplyResult>(result: Result | Unavailable): Result | Unavailable {
    if (result.kind !== 'unavailable' || result.scope === 'zone') {
      this.#breaker = CLOSED
      return result
    }
    const now = this.#options.now()
    this.#lastReason = result.reason
    const { retryAfterMs } = result
    this.#breaker = afterFailure(this.#breaker, { now, retryAfterMs, random: this.#options.random() })
    return { ...result, retryAfterMs: msUntilRetry(this.#breaker, now) }
  }
}

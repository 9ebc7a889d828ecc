import type { ApplyResult, ReadResult, Unavailable, WantedRecords, ZonePart } from '../dns/domain/result.ts'
import type { RecordChange } from '../dns/domain/rrset.ts'
import type { DnsProvider, ZoneAccess } from '../dns/provider.ts'
import { runInSpan, type Tracer } from '../observability/domain/tracer.ts'
import { backoffMs } from './domain/backoff.ts'

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

type ProviderOperation = 'read' | 'apply'
type ProviderOutcome = 'done' | 'rejected' | 'unavailable'

export interface ProviderCallObserver {
  onProviderCall(operation: ProviderOperation, outcome: ProviderOutcome, seconds: number): void
  /** Calls are suspended from now on. `reason` is that of the last failure. */
  onCircuitOpened(reason: string): void
  /** A call has succeeded `openSeconds` after the circuit opened. */
  onCircuitClosed(openSeconds: number): void
  onError(event: 'dns provider threw an unexpected error', error: unknown): void
}

export interface ProviderClientOptions {
  readonly provider: ZoneAccess & Pick<DnsProvider, 'isDatabase'>
  /** Milliseconds that one call may take without progress. */
  readonly timeoutMs: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** From 0 to 1. */
  readonly random: () => number
  readonly observer: ProviderCallObserver
  /** Null: tracing is off. */
  readonly tracer: Tracer | null
  /** False: every write is `unavailable`, without a call. */
  readonly writesZones: boolean
}

/** Time that can be extended, in milliseconds. */
interface TimeLimit {
  remainingMs(): number
}

/** The zone lock ended before the write did. Not a failure of the provider. */
const LOCK_ENDED = { kind: 'lock-ended' } as const

type CallResult = ReadResult | ApplyResult | { readonly kind: 'complete' }
type EndedResult<Result> = Result | Unavailable | typeof LOCK_ENDED

/** One call. `onProgress` restarts its time limit, and `pause` stops it until then. */
type Run<Result> = (signal: AbortSignal, onProgress: () => void, pause: () => void) => Promise<Result>

/** Changes that are due are the better probe: they need no additional call. */
const PROBE_DELAY_MS = 1_000

/** The pause for the calls that are rejected while the call of a half-open circuit is in flight. */
const HALF_OPEN_RETRY_MS = 500

/** The pause after a failure of the database that has the records. */
const DATABASE_RETRY_MS = 1_000

const toCallOutcome = (result: EndedResult<CallResult>): ProviderOutcome => {
  if (result.kind === 'unavailable' || result.kind === 'lock-ended') return 'unavailable'
  return result.kind === 'applied' && result.rejected.length > 0 ? 'rejected' : 'done'
}

/**
 * Calls the provider with a timeout, which ends a call without progress and holds even if the provider ignores its signal, and behind a circuit breaker.
 * `unavailable` results have `retryAfterMs` unless they are of one zone only.
 */
export class ProviderClient {
  readonly #options: ProviderClientOptions
  #breaker: CircuitBreaker = CLOSED
  #openedAt = 0
  /** The circuit is half-open and its one call is in flight. */
  #isHalfOpenCallInFlight = false
  #lastReason = ''
  /** The zone of the last failure of the provider. */
  #failedZone: string | null = null

  constructor(options: ProviderClientOptions) {
    this.#options = options
  }

  read(zone: string, wanted: WantedRecords): Promise<ReadResult> {
    return this.#call('read', zone, async (signal, onProgress) =>
      this.#options.provider.read(zone, wanted, signal, onProgress),
    )
  }

  /** Reads the whole zone in parts, each of which waits for `onPart` of the one before. Null: these were all. */
  async readZone(zone: string, onPart: (part: ZonePart) => Promise<void>): Promise<Unavailable | null> {
    let failure: { readonly error: unknown } | undefined
    const result = await this.#call('read', zone, async (signal, onProgress, pause) => {
      for await (const part of this.#options.provider.readZone(zone, signal, onProgress)) {
        if (part.kind === 'unavailable') return part
        // The time of the caller is not the provider's.
        pause()
        await onPart(part).catch((error: unknown) => {
          failure = { error }
        })
        if (failure) break
        onProgress()
      }
      return { kind: 'complete' as const }
    })
    if (failure) throw failure.error
    return result.kind === 'unavailable' ? result : null
  }

  /** The call is made, and continues, only while `lock` has time left. */
  async apply(zone: string, changes: readonly RecordChange[], lock: TimeLimit): Promise<ApplyResult> {
    if (!this.#options.writesZones) {
      return { kind: 'unavailable', scope: 'zone', reason: 'DNS writes are turned off (PDM_DNS_WRITES=off).' }
    }
    return this.#call(
      'apply',
      zone,
      async (signal, onProgress) => this.#options.provider.apply(zone, changes, signal, onProgress),
      lock,
    )
  }

  /** Also while it is half-open: it closes when a call succeeds. */
  isCircuitOpen(): boolean {
    return this.#breaker.isOpen
  }

  /** It has failed so often in a row that the next attempt will probably fail too. */
  isDown(): boolean {
    return this.#breaker.failures >= FAILURE_THRESHOLD
  }

  /**
   * The zone to read to find out if the provider is back; null if no probe is due. It is due when the pause of the open
   * circuit is over and no other call has used it.
   */
  findZoneToProbe(): string | null {
    const { isOpen, retryAt } = this.#breaker
    const isDue = isOpen && !this.#isHalfOpenCallInFlight && this.#options.now() >= retryAt + PROBE_DELAY_MS
    return isDue ? this.#failedZone : null
  }

  async #call<Result extends CallResult>(
    operation: ProviderOperation,
    zone: string,
    run: Run<Result>,
    lock?: TimeLimit,
  ): Promise<Result | Unavailable> {
    const remainingMs = openMs(this.#breaker, this.#options.now())
    if (remainingMs > 0 || this.#isHalfOpenCallInFlight) return this.#rejectCall(remainingMs)
    const isHalfOpen = this.#breaker.isOpen
    this.#isHalfOpenCallInFlight = isHalfOpen
    const startedAt = performance.now()
    const onFirstProgress = () => {
      // Other calls need not wait for the end of a long one.
      if (isHalfOpen) this.#isHalfOpenCallInFlight = false
      this.#setBreaker(CLOSED)
    }
    const spanOptions = { kind: 'client', attributes: { 'pdm.zone': zone } } as const
    const { tracer } = this.#options
    const { result, outcome } = await runInSpan(tracer, `dns provider ${operation}`, spanOptions, async span => {
      const result = await this.#runWithTimeout(run, onFirstProgress, lock)
      const outcome = toCallOutcome(result)
      span.setAttributes({ 'pdm.outcome': outcome })
      return { result, outcome }
    })
    if (isHalfOpen) this.#isHalfOpenCallInFlight = false
    this.#options.observer.onProviderCall(operation, outcome, (performance.now() - startedAt) / 1_000)
    return this.#updateBreaker(zone, result)
  }

  #rejectCall(remainingMs: number): Unavailable {
    const retryAfterMs = Math.max(remainingMs, HALF_OPEN_RETRY_MS)
    const reason = `${this.#lastReason} Next attempt in ${Math.ceil(retryAfterMs / 1_000)} s.`
    return { kind: 'unavailable', reason, retryAfterMs }
  }

  async #runWithTimeout<Result>(
    run: Run<Result>,
    onFirstProgress: () => void,
    lock?: TimeLimit,
  ): Promise<EndedResult<Result>> {
    const remainingMs = () => lock?.remainingMs() ?? Number.POSITIVE_INFINITY
    if (remainingMs() <= 0) return LOCK_ENDED
    const { timeoutMs, observer } = this.#options
    const controller = new AbortController()
    const { promise: timedOut, resolve } = Promise.withResolvers<Unavailable | typeof LOCK_ENDED>()
    let hasProgress = false
    let timer: NodeJS.Timeout | undefined
    const restart = () => {
      clearTimeout(timer)
      timer = setTimeout(() => {
        controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'))
        resolve({ kind: 'unavailable', reason: `The DNS provider did not answer within ${timeoutMs / 1_000} s.` })
      }, timeoutMs)
    }
    let lockTimer: NodeJS.Timeout | undefined
    const endWithLock = () => {
      clearTimeout(lockTimer)
      if (remainingMs() > 0) {
        if (lock) lockTimer = setTimeout(endWithLock, remainingMs())
        return
      }
      controller.abort(new DOMException('The zone lock ended', 'AbortError'))
      resolve(LOCK_ENDED)
    }
    endWithLock()
    const onProgress = () => {
      // A process that was paused gets here before its timers.
      endWithLock()
      if (controller.signal.aborted) return
      restart()
      if (!hasProgress) onFirstProgress()
      hasProgress = true
    }
    restart()
    return Promise.race([run(controller.signal, onProgress, () => clearTimeout(timer)), timedOut])
      .catch((error: unknown): Unavailable => {
        observer.onError('dns provider threw an unexpected error', error)
        // Most likely caused by what this call sent, so it must not block other zones.
        const reason = 'Internal error calling the DNS provider; see the log.'
        return { kind: 'unavailable', reason, scope: 'zone' }
      })
      .finally(() => {
        clearTimeout(timer)
        clearTimeout(lockTimer)
      })
  }

  #updateBreaker<Result extends CallResult>(zone: string, result: EndedResult<Result>): Result | Unavailable {
    if (result.kind === 'lock-ended') {
      const reason = 'The zone lock ended before the write did.'
      return { kind: 'unavailable', scope: 'zone', isTransient: true, reason }
    }
    // A provider whose records are in the database needs no circuit: everything else waits for the database too.
    if (result.kind === 'unavailable' && result.scope !== 'zone' && this.#options.provider.isDatabase) {
      return { ...result, retryAfterMs: DATABASE_RETRY_MS }
    }
    if (result.kind !== 'unavailable' || result.scope === 'zone') {
      this.#setBreaker(CLOSED)
      return result
    }
    const now = this.#options.now()
    this.#lastReason = result.reason
    this.#failedZone = zone
    const { retryAfterMs } = result
    this.#setBreaker(afterFailure(this.#breaker, { now, retryAfterMs, random: this.#options.random() }))
    return { ...result, retryAfterMs: msUntilRetry(this.#breaker, now) }
  }

  #setBreaker(breaker: CircuitBreaker): void {
    const wasOpen = this.#breaker.isOpen
    this.#breaker = breaker
    if (breaker.isOpen === wasOpen) return
    const { now, observer } = this.#options
    if (breaker.isOpen) {
      this.#openedAt = now()
      observer.onCircuitOpened(this.#lastReason)
    } else observer.onCircuitClosed((now() - this.#openedAt) / 1_000)
  }
}

import { holder, leaseValue, slot as slotSchema } from '@pool/contract/lease'
import { NoResponseError } from '../errors.ts'
import { notify } from '../hooks.ts'
import { checkOptions, type OptionKinds } from '../options.ts'
import { pause, systemTiming, type Timing } from '../timing.ts'
import { DEFAULT_DURATIONS, type ElectionDurations, validateDurations } from './domain/durations.ts'
import { createInstantReader, type Instant, msUntil } from './domain/elapsed-time.ts'
import {
  type Action,
  afterStop,
  applyResult,
  cancel,
  createElection,
  decide,
  type ElectionRules,
  type ElectionState,
  isOwn,
  type Sent,
  type StopReason,
  type Tenure,
  toTimeoutMs,
  toWaitSeconds,
} from './domain/election.ts'
import { isCreatedHere } from './identity.ts'
import type { CallResult, LeaseCalls } from './lease-calls.ts'
import { type LeadershipContext, TenureContext } from './tenure-context.ts'

export interface LeaderCallbacks {
  /**
   * Called at the start of each tenure. Its promise covers the work: the lease is released, and the next tenure starts,
   * only after it has settled. A rejection ends the tenure, and `run` rejects with it.
   */
  readonly onStartedLeading: (context: LeadershipContext) => void | Promise<void>
  /** Called at the end of each tenure, after `context.signal` was aborted and before the lease can expire. */
  readonly onStoppedLeading: (reason: StopReason) => void | Promise<void>
  /**
   * Called when another candidate than the last one leads, or the leader has another value; also for this one. `value` is
   * empty if the leader has none. What it throws is ignored.
   */
  readonly onNewLeader?: (identity: string, value: string) => void
}

export interface LeaseElectorOptions extends Partial<ElectionDurations> {
  /** A LeaseClient, or a RenewalBatch. */
  readonly leases: { readonly calls: LeaseCalls }
  /** The lease that the candidates compete for. */
  readonly slot: string
  /**
   * The holder name of this candidate, from `createIdentity`. A lease with any other name can be that of another process, so
   * the elector waits until it expires, unless it acquired the lease and got the response.
   */
  readonly identity: string
  /**
   * What this candidate shows to others while it leads, such as its address. Not a secret: at most 1,024 bytes of UTF-8
   * without control characters.
   */
  readonly value?: string | undefined
  readonly callbacks: LeaderCallbacks
  /**
   * Releases the lease when `run` is cancelled, after the promises of the callbacks have settled. True by default; false:
   * the lease expires.
   */
  readonly releaseOnCancel?: boolean
  /** Receives the errors of requests; the elector continues. Absent: the first of them in a row is a `console.warn`. */
  readonly onError?: (error: unknown) => void
  readonly timing?: Timing
  /** Renewals are sent at the same phase of each retry period, so that a batch of electors shares them. */
  readonly renewalPhaseMs?: number
}

/** Of an elector that is given its slot and its work in another way. */
export const CANDIDATE_OPTIONS: OptionKinds<Omit<LeaseElectorOptions, 'slot' | 'callbacks' | 'releaseOnCancel'>> = {
  leases: 'object',
  identity: 'any',
  value: 'any',
  leaseDuration: 'any',
  renewDeadline: 'any',
  retryPeriod: 'any',
  onError: 'function',
  timing: 'object',
  renewalPhaseMs: 'milliseconds',
}

export const ELECTOR_OPTIONS: OptionKinds<LeaseElectorOptions> = {
  ...CANDIDATE_OPTIONS,
  slot: 'any',
  callbacks: 'object',
  releaseOnCancel: 'flag',
}

export interface ElectorHealth {
  readonly isLeader: boolean
  /** Milliseconds until this candidate stops leading; 0: it does not lead. */
  readonly remainingMs: number
  /** The last leader that was observed; empty: none. */
  readonly leader: string
  /** Milliseconds since the last response of the witness; null: there was none. */
  readonly lastResponseMs: number | null
}

/** Counters since the elector was created. */
export interface ElectorMetrics {
  readonly tenures: number
  readonly stops: Readonly<Record<StopReason, number>>
  readonly renewals: number
  /** Requests without a usable response. */
  readonly failures: number
  readonly lostRaces: number
}

const checkElectorOptions = (options: LeaseElectorOptions): void => {
  checkOptions('The elector', options, ELECTOR_OPTIONS)
  const { leases, callbacks } = options
  if (!leases?.calls) throw new TypeError('The elector: leases must be a LeaseClient, or a RenewalBatch.')
  checkOptions('callbacks', callbacks, {
    onStartedLeading: 'function',
    onStoppedLeading: 'function',
    onNewLeader: 'function',
  })
  for (const name of ['onStartedLeading', 'onStoppedLeading'] as const) {
    if (!callbacks[name]) throw new TypeError(`callbacks.${name} must be a function.`)
  }
}

/** A renewal or a release whose response was lost may take effect between two attempts. */
const MAX_RELEASE_ATTEMPTS = 3

/** The electors of this process that run. */
const running = new Set<LeaseElector>()

const settle = async (work: () => void | Promise<void>): Promise<{ error: unknown } | undefined> => {
  try {
    await work()
    return undefined
  } catch (error) {
    return { error }
  }
}

/** Resolves when `signal` is aborted. Never, if `limit` is aborted first. */
const waitForAbort = (signal: AbortSignal, limit: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true, signal: limit })
  })

/**
 * A candidate of a leader election over one lease. The rules are in domain/election.ts; this class sends the requests, waits,
 * and calls the callbacks.
 */
export class LeaseElector {
  readonly #options: LeaseElectorOptions
  #rules: ElectionRules
  readonly #timing: Timing
  readonly #now: () => Instant
  #state: ElectionState
  #context: TenureContext | undefined
  /** The promise of `onStartedLeading` of the current tenure. */
  #work: Promise<{ error: unknown } | undefined> = Promise.resolve(undefined)
  #leader = ''
  #leaderValue = ''
  /** On the monotonic clock. */
  #lastResponseAt: number | undefined
  #isRunning = false
  /** The current tenure must stop: a handover, or a failure of its work. */
  #isCancelled = false
  /** Milliseconds to stay out of the election after the current tenure. */
  #handoverPauseMs = 0
  /** The last acquisition had no response, so this candidate may hold the lease without leading. */
  #isUncertain = false
  /** The last request had an error, which was reported. */
  #isFailing = false
  /** Ends the sleep or the request of the current step. */
  #interrupt = new AbortController()
  readonly #metrics = {
    tenures: 0,
    stops: { 'renew-deadline': 0, 'lease-lost': 0, cancelled: 0 },
    renewals: 0,
    failures: 0,
    lostRaces: 0,
  }

  /** Throws RangeError if the durations, the slot, the identity or the value violate a rule; TypeError for other options. */
  constructor(options: LeaseElectorOptions) {
    checkElectorOptions(options)
    const {
      leaseDuration = DEFAULT_DURATIONS.leaseDuration,
      renewDeadline = DEFAULT_DURATIONS.renewDeadline,
      retryPeriod = DEFAULT_DURATIONS.retryPeriod,
      identity,
      value = '',
      renewalPhaseMs,
      timing = systemTiming,
    } = options
    validateDurations({ leaseDuration, renewDeadline, retryPeriod })
    for (const parsed of [
      slotSchema.safeParse(options.slot),
      holder.safeParse(identity),
      leaseValue.safeParse(value),
    ]) {
      if (!parsed.success) throw new RangeError(parsed.error.issues[0]?.message)
    }
    this.#options = options
    this.#rules = {
      leaseDuration,
      renewDeadline,
      retryPeriod,
      identity,
      isUnique: isCreatedHere(identity),
      renewalPhaseMs,
    }
    this.#timing = timing
    this.#now = createInstantReader(() => ({ monotonicMs: timing.now(), wallMs: timing.wallNow() }))
    this.#state = createElection(this.#now())
  }

  /** The last leader that was observed; empty: none. For information: only the witness knows the current one. */
  get leader(): string {
    return this.#leader
  }

  /** The value of the last leader that was observed; empty: none. A standby sees a change when its wait ends. */
  get leaderValue(): string {
    return this.#leaderValue
  }

  /** Compares the deadline at every call: false from the deadline on, even before `onStoppedLeading` was called. */
  isLeader(): boolean {
    return this.#context?.isLeader() ?? false
  }

  health(): ElectorHealth {
    const { leader } = this
    const lastResponseMs = this.#lastResponseAt === undefined ? null : this.#timing.now() - this.#lastResponseAt
    return { isLeader: this.isLeader(), remainingMs: this.#context?.remainingMs() ?? 0, leader, lastResponseMs }
  }

  metrics(): ElectorMetrics {
    return { ...this.#metrics, stops: { ...this.#metrics.stops } }
  }

  /**
   * Takes part in the election until the signal is aborted: as a standby after each tenure. Resolves when the callbacks have
   * settled and the lease is released, or when the lease has expired before that. Rejects with the error of a callback.
   */
  async run(signal: AbortSignal): Promise<void> {
    if (!(signal instanceof AbortSignal)) throw new TypeError('run needs an AbortSignal, which ends the election.')
    if (this.#isRunning) throw new Error('This elector already runs. Create one elector for each candidate.')
    this.#isRunning = true
    this.#shareIdentity()
    running.add(this)
    const interrupt = () => this.#interrupt.abort()
    signal.addEventListener('abort', interrupt)
    try {
      while (!(signal.aborted && this.#state.kind === 'standby')) await this.#step(signal)
      const mayRelease = this.#rules.isUnique && (this.#options.releaseOnCancel ?? true)
      if (this.#isUncertain && mayRelease) await this.#release(this.#state.generation)
    } finally {
      running.delete(this)
      signal.removeEventListener('abort', interrupt)
      this.#isRunning = false
    }
  }

  /**
   * Ends the current tenure as a cancellation does, releases the lease, and stays out of the election for `pauseMs`, so that
   * another candidate leads; two retry periods by default. Without effect if this candidate does not lead.
   */
  handOver(pauseMs: number = 2 * this.#rules.retryPeriod): void {
    if (this.#state.kind === 'standby') return
    this.#handoverPauseMs = pauseMs
    this.#cancel()
  }

  /** Two electors of one process can have one identity: it is not unique to either of them. */
  #shareIdentity(): void {
    const { slot, identity } = this.#options
    for (const other of running) {
      if (other.#options.slot !== slot || other.#options.identity !== identity) continue
      for (const elector of [this, other]) elector.#rules = { ...elector.#rules, isUnique: false }
    }
  }

  async #step(signal: AbortSignal): Promise<void> {
    this.#interrupt = new AbortController()
    if (signal.aborted || this.#isCancelled) this.#state = cancel(this.#state)
    const action = decide(this.#rules, this.#state, this.#now())
    if (action.kind === 'stop') await this.#stop(action.reason, action.tenure, signal)
    else if (action.kind === 'sleep') await this.#sleep(action.ms)
    else await this.#request(action, signal)
  }

  #sleep(ms: number): Promise<void> {
    return pause(this.#timing, ms, this.#interrupt.signal).catch(() => {})
  }

  async #request(
    { kind, generation, timeoutMs }: Exclude<Action, { kind: 'sleep' | 'stop' }>,
    signal: AbortSignal,
  ): Promise<void> {
    const { slot, identity, value } = this.#options
    const leases = this.#options.leases.calls
    const sent: Sent = { kind, generation, sentAt: this.#now() }
    const write = { holder: identity, generation, ttlMs: this.#rules.leaseDuration, value }
    // A cancellation waits for the result of an acquisition, so that the lease can be released.
    const interrupt = kind === 'acquire' ? undefined : this.#interrupt.signal
    const result = await this.#withTimeout(kind === 'read' || kind === 'wait', timeoutMs, interrupt, options => {
      if (kind === 'read') return leases.read(slot, options)
      if (kind === 'wait') return leases.waitUntilVacant(slot, toWaitSeconds(this.#rules, this.#state), options)
      return kind === 'acquire' ? leases.acquire(slot, write, options) : leases.renew(slot, write, options)
    })
    const before = this.#state
    this.#state = applyResult(this.#rules, before, sent, result, this.#now(), this.#timing.random())
    this.#record(sent, result)
    if (kind === 'acquire') this.#isUncertain = result.kind === 'unknown'
    if (this.#state.kind !== 'leading') return
    if (before.kind === 'leading') this.#context?.extend(this.#state.tenure)
    else if (!signal.aborted) this.#start(this.#state.tenure)
  }

  /** Ends at the timeout or the interruption, even if the call ignores its signal. */
  async #withTimeout(
    isRead: boolean,
    timeoutMs: number,
    interrupt: AbortSignal | undefined,
    call: (options: { signal: AbortSignal }) => Promise<CallResult>,
  ): Promise<CallResult> {
    const request = new AbortController()
    let error: unknown
    const aborted = new Promise<CallResult>(resolve => {
      const result = isRead ? ({ kind: 'failed', timedOut: true } as const) : ({ kind: 'unknown' } as const)
      request.signal.addEventListener('abort', () => resolve({ ...result, retryAfterMs: 0, error }))
    })
    const abort = () => request.abort()
    const cancelTimer = this.#timing.schedule(timeoutMs, () => {
      const operation = isRead ? 'readLease' : 'writeLease'
      const failure = { operation, attempts: 1, requestId: '', isOutcomeUnknown: !isRead }
      error = new NoResponseError(failure, { text: 'the request took too long', reasonCode: 'ETIMEDOUT' })
      abort()
    })
    interrupt?.addEventListener('abort', abort)
    try {
      return await Promise.race([call({ signal: request.signal }), aborted])
    } finally {
      cancelTimer()
      interrupt?.removeEventListener('abort', abort)
    }
  }

  #record(sent: Sent, result: CallResult): void {
    if (result.kind === 'failed' || result.kind === 'unknown') {
      this.#recordFailure(result)
      return
    }
    this.#lastResponseAt = this.#timing.now()
    this.#isFailing = false
    if (sent.kind === 'acquire' && result.kind === 'observed') this.#metrics.lostRaces += 1
    if (sent.kind === 'renew' && result.kind === 'granted') this.#metrics.renewals += 1
    const { holder, remainingMs, value } = result.lease
    // Its own tenure is reported by #start.
    if (remainingMs > 0 && holder !== this.#options.identity) this.#reportLeader(holder, value)
  }

  #recordFailure({ error }: CallResult): void {
    this.#metrics.failures += 1
    if (error === undefined) return
    const { onError, slot } = this.#options
    if (onError) notify(onError, error)
    // biome-ignore lint/suspicious/noConsole: an elector that can never lead would be silent otherwise
    else if (!this.#isFailing) console.warn(`A request of the elector of ${slot} failed; it continues: ${error}`)
    this.#isFailing = true
  }

  #reportLeader(identity: string, value = ''): void {
    if (identity === this.#leader && value === this.#leaderValue) return
    this.#leader = identity
    this.#leaderValue = value
    notify(this.#options.callbacks.onNewLeader, identity, value)
  }

  #start(tenure: Tenure): void {
    this.#metrics.tenures += 1
    const { callbacks } = this.#options
    const context = new TenureContext(this.#options, tenure, this.#now, () => this.#interrupt.abort())
    this.#context = context
    this.#reportLeader(this.#options.identity, this.#options.value)
    this.#work = settle(() => callbacks.onStartedLeading(context))
    // A failed tenure must not keep other candidates from leading.
    void this.#work.then(failure => {
      if (failure && this.#context === context) this.#cancel()
    })
  }

  #cancel(): void {
    this.#isCancelled = true
    this.#interrupt.abort()
  }

  /** Ends the tenure: first for `isLeader` and the context, then for the callbacks; after them the lease is released. */
  async #stop(reason: StopReason, tenure: Tenure, signal: AbortSignal): Promise<void> {
    this.#context?.end(reason)
    const work = this.#context ? [this.#work, settle(() => this.#options.callbacks.onStoppedLeading(reason))] : []
    this.#metrics.stops[reason] += 1
    const settled = Promise.all(work).then(results => ({ failure: results.find(result => result !== undefined) }))
    const isReleased = reason === 'cancelled' && (this.#options.releaseOnCancel ?? true)
    if (isReleased && (await this.#beforeExpiry(tenure, settled))) await this.#release(tenure.generation)
    // Two tenures of one process must not overlap either.
    const outcome = await this.#untilSettled(tenure, settled, signal)
    this.#context = undefined
    this.#state = afterStop(this.#state, this.#now(), this.#handoverPauseMs)
    this.#isCancelled = false
    this.#handoverPauseMs = 0
    if (outcome?.failure) throw outcome.failure.error
  }

  /** Whether the work settles before the lease can expire. */
  async #beforeExpiry({ expiry }: Tenure, settled: Promise<unknown>): Promise<boolean> {
    const limit = new AbortController()
    const expired = pause(this.#timing, msUntil(expiry, this.#now()), limit.signal).catch(() => {})
    const isSettled = await Promise.race([settled.then(() => true), expired.then(() => false)])
    limit.abort()
    return isSettled
  }

  /** Waits for the work; after `signal` was aborted, at most until the lease has expired. */
  async #untilSettled<Outcome>(
    { expiry }: Tenure,
    settled: Promise<Outcome>,
    signal: AbortSignal,
  ): Promise<Outcome | undefined> {
    const limit = new AbortController()
    const waitForExpiry = async () => {
      await waitForAbort(signal, limit.signal)
      await pause(this.#timing, msUntil(expiry, this.#now()), limit.signal).catch(() => {})
      return undefined
    }
    const outcome = await Promise.race([settled, waitForExpiry()])
    limit.abort()
    return outcome
  }

  /** Releases the lease of this candidate. After a release without a response, the lease is read and compared. */
  async #release(lastGeneration: number): Promise<void> {
    const { slot, identity: holder } = this.#options
    const leases = this.#options.leases.calls
    const timeoutMs = toTimeoutMs(this.#rules)
    let generation = lastGeneration
    for (let attempt = 0; attempt < MAX_RELEASE_ATTEMPTS; attempt += 1) {
      let result = await this.#withTimeout(false, timeoutMs, undefined, options =>
        leases.release(slot, { holder, generation }, options),
      )
      if (result.kind === 'unknown') {
        this.#recordFailure(result)
        result = await this.#withTimeout(true, timeoutMs, undefined, options => leases.read(slot, options))
      }
      if (result.kind === 'granted') return
      if (result.kind !== 'observed') {
        this.#recordFailure(result)
        return
      }
      if (!isOwn(this.#rules, this.#state, result.lease)) return
      generation = result.lease.generation
    }
  }
}

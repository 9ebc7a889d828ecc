import type { ObjectStorageKeys } from '@pool/contract'
import pLimit from 'p-limit'
import type { FindBucket } from '../credentials/find-bucket.ts'
import type { ValidationOutcome } from '../credentials/service.ts'
import type { Caller } from '../naming/naming.ts'
import { LogWriter } from './deployment-log.ts'
import type { AccessKeyPair, DeploymentSpec, Obstacle, RunLease, RunState } from './domain/types.ts'
import type { Holder, ReservationClient } from './fqdn.ts'
import type { Provisioner } from './provisioner.ts'
import {
  CancelledError,
  DeploymentRun,
  LeaseLostError,
  ReservationLostError,
  type RunOutcome,
  ShutdownError,
  type StorageProvider,
} from './run.ts'
import type { RunRepository } from './run-repository.ts'

export interface RunObserver {
  onRunEnded(id: string, outcome: RunOutcome, seconds: number): void
  /** `id` is that of the deployment. */
  onError(id: string, error: unknown): void
}

export interface RunnerOptions {
  readonly repository: RunRepository
  readonly reservations: ReservationClient
  readonly provisioner: Provisioner
  readonly storage: StorageProvider
  /** Limited per caller, so that deployments cannot be used to try credentials faster than the validation routes. */
  readonly validateKeys: (keys: ObjectStorageKeys, address: string | null) => Promise<ValidationOutcome>
  readonly findBucket: FindBucket
  /** Whether a load balancer can have an address of 198.18.0.0/15, which is not routed. */
  readonly acceptsTestAddresses: boolean
  /** Runs in progress at a time in this process. */
  readonly maxConcurrentRuns: number
  /** Milliseconds. */
  readonly leaseMs: number
  /** Milliseconds between renewals of a run's reservation. */
  readonly reservationRenewalMs: number
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number
  readonly onLogChanged: (id: string) => void
  readonly observer: RunObserver
}

interface ActiveRun {
  readonly run: DeploymentRun
  /** Waits for a slot. */
  isQueued: boolean
  leaseRenewedAt: number
  reservationRenewedAt: number
}

/** Deployments that wait in this process, with their credentials in its memory. */
const MAX_QUEUED = 100
const MAX_QUEUED_OF_OPERATORS = 20
const QUEUE_FULL_RETRY_S = 30
/** Part of the lease after which an unrenewed run stops, in case this clock is slower than the database's. */
const LEASE_SAFETY = 0.8

const toLease = ({ run: { state } }: ActiveRun): RunLease => ({ id: state.id, generation: state.generation })

const throwFirstFailure = (results: readonly PromiseSettledResult<unknown>[]): void => {
  const failed = results.find(result => result.status === 'rejected')
  if (failed) throw failed.reason
}

/**
 * Runs deployments in this process, a bounded number at a time, each under a lease that is renewed while it runs. A
 * process that cannot renew a lease stops the run before another process can claim it. Orphaned deployments are claimed
 * by any process.
 */
export class Runner {
  readonly #options: RunnerOptions
  readonly #limit: ReturnType<typeof pLimit>
  readonly #active = new Map<string, ActiveRun>()
  readonly #unfinished = new Set<Promise<void>>()
  #isStopping = false

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#limit = pLimit(options.maxConcurrentRuns)
  }

  get activeCount(): number {
    return this.#active.size
  }

  /** Why no run can start now: prerequisites of this process, its queue, or credentials that do not work. */
  async findObstacle(
    { storage }: DeploymentSpec,
    credentials: AccessKeyPair | null,
    { address, actor }: Caller,
  ): Promise<Obstacle | null> {
    const { provisioner, validateKeys } = this.#options
    const missing = await provisioner.preflight()
    if (missing !== null) return { kind: 'provisioning-unavailable', detail: missing }
    // Clients cannot use up what operators have.
    const max = actor === 'operator' ? MAX_QUEUED + MAX_QUEUED_OF_OPERATORS : MAX_QUEUED
    if (this.#isStopping || this.#limit.pendingCount >= max) {
      const detail = 'Deployment queue is full, or the server is shutting down.'
      return { kind: 'provisioning-unavailable', detail, retryAfterSeconds: QUEUE_FULL_RETRY_S }
    }
    if (!credentials || !storage) return null
    const outcome = await validateKeys({ region: storage.region, ...credentials }, address)
    if (outcome.kind === 'too-many-attempts') {
      return { ...outcome, detail: 'Too many credential checks from your address.' }
    }
    const { kind, message } = outcome
    if (kind === 'unavailable') return { kind: 'object-storage-unavailable', detail: message }
    if (kind === 'accepted') return null
    return { kind: 'invalid-deployment', faults: [{ field: 'objectStorageAccessKey', detail: message }] }
  }

  /** Queues the first run of a deployment that this process has stored as generation 1. */
  submitNew(holder: Holder, credentials: AccessKeyPair | null, hasCreatedBucket = false): void {
    const state: RunState = {
      ...holder,
      generation: 1,
      operation: 'create',
      plan: null,
      attempt: 1,
      hasInfrastructure: false,
      isApplied: false,
      result: null,
      stateLock: null,
      knownState: null,
      hasCreatedBucket,
      isCancelled: false,
      pendingError: null,
      lineCount: 0,
    }
    this.submit(state, credentials)
  }

  /** Queues a run whose lease this process holds. */
  submit(state: RunState, credentials: AccessKeyPair | null): void {
    const { repository, observer, now, onLogChanged } = this.#options
    const { id, generation, lineCount } = state
    const run = new DeploymentRun({
      ...this.#options,
      state,
      credentials,
      logWriter: new LogWriter({
        repository,
        lease: { id, generation },
        lineCount,
        onStored: () => onLogChanged(id),
      }),
      onError: error => observer.onError(id, error),
    })
    // When an orphaned deployment's reservation was last renewed is unknown, so it is renewed at the next tick.
    const reservationRenewedAt = generation > 1 ? Number.NEGATIVE_INFINITY : now()
    const entry: ActiveRun = { run, isQueued: true, leaseRenewedAt: now(), reservationRenewedAt }
    this.#active.set(id, entry)
    const started = Promise.withResolvers<void>()
    let hasStarted = false
    const start = (): Promise<void> => {
      entry.isQueued = false
      if (!hasStarted) started.resolve(this.#execute(run))
      hasStarted = true
      return started.promise
    }
    // A queued run that is stopped provisions nothing, so it does not wait for a slot to release its name.
    run.signal.addEventListener('abort', start, { once: true })
    if (this.#isStopping) run.stop(new ShutdownError(state.operation))
    void this.#limit(start).catch(() => {})
    const finished = started.promise
      .catch((error: unknown) => observer.onError(id, error))
      .finally(() => {
        if (this.#active.get(id) === entry) this.#active.delete(id)
        this.#unfinished.delete(finished)
      })
    this.#unfinished.add(finished)
  }

  async #execute(run: DeploymentRun): Promise<void> {
    const { observer, now, onLogChanged } = this.#options
    const { id } = run.state
    const startedAt = now()
    const outcome = await run.execute()
    observer.onRunEnded(id, outcome, (now() - startedAt) / 1_000)
    onLogChanged(id)
  }

  /**
   * Stops the run if it is in this process, at once if `isForced`. Other processes learn of a cancellation when they renew
   * their leases.
   */
  cancel(id: string, isForced = false): void {
    const run = this.#active.get(id)?.run
    run?.stop(new CancelledError())
    if (isForced) run?.force()
  }

  /** Renews leases and reservations, and claims orphaned deployments. Call it several times within a lease. */
  async tick(): Promise<void> {
    try {
      await this.#renewLeases()
      await this.#claimExpired()
      await this.#renewReservations()
    } finally {
      this.#stopUnrenewed()
    }
  }

  /** Stops all runs and waits for their end. */
  async stop(): Promise<void> {
    this.#isStopping = true
    for (const { run } of this.#active.values()) run.stop(new ShutdownError(run.state.operation))
    await Promise.all(this.#unfinished)
  }

  /** A run whose row stays locked stops when its lease ends. */
  async #renewLeases(): Promise<void> {
    const { repository, now } = this.#options
    const entries = [...this.#active.values()]
    if (entries.length === 0) return
    const startedAt = now()
    const renewed = await repository.renewLeases(entries.map(toLease))
    const byId = new Map(renewed.map(lease => [lease.id, lease]))
    for (const entry of entries) {
      const lease = byId.get(entry.run.state.id)
      if (lease?.isLocked) continue
      if (lease) entry.leaseRenewedAt = startedAt
      else if (this.#isActive(entry)) entry.run.stop(new LeaseLostError())
      if (lease?.isCancelled) entry.run.stop(new CancelledError())
      if (lease?.isForced) entry.run.force()
    }
  }

  /**
   * Without a free slot, it claims an orphan that no process with a free slot has claimed in time, one at a time: a queue
   * that is never empty must not keep orphans waiting.
   */
  async #claimExpired(): Promise<void> {
    const { maxConcurrentRuns, repository, leaseMs } = this.#options
    if (this.#isStopping) return
    const free = maxConcurrentRuns - this.#active.size
    const hasQueuedOrphan = [...this.#active.values()].some(({ run, isQueued }) => isQueued && run.state.attempt > 1)
    if (free <= 0 && hasQueuedOrphan) return
    const claimed = free > 0 ? repository.claimExpired(free, 0) : repository.claimExpired(1, leaseMs)
    for (const state of await claimed) this.submit(state, null)
  }

  /** One renewal that fails does not keep the others from being tried. */
  async #renewReservations(): Promise<void> {
    const { reservations, reservationRenewalMs, now } = this.#options
    const due = [...this.#active.values()].filter(
      ({ run, reservationRenewedAt }) =>
        !run.signal.aborted &&
        // A destroy needs no name.
        run.state.operation !== 'destroy' &&
        now() - reservationRenewedAt >= reservationRenewalMs,
    )
    const results = await Promise.allSettled(
      due.map(async entry => {
        const isHeld = await reservations.renew(entry.run.state)
        entry.reservationRenewedAt = now()
        if (!isHeld && this.#isActive(entry)) entry.run.stop(new ReservationLostError())
      }),
    )
    throwFirstFailure(results)
  }

  #stopUnrenewed(): void {
    const { now, leaseMs } = this.#options
    for (const { run, leaseRenewedAt } of this.#active.values()) {
      if (now() - leaseRenewedAt > LEASE_SAFETY * leaseMs) run.stop(new LeaseLostError())
    }
  }

  /** False after its end, and if this process has claimed the same deployment again since. */
  #isActive(entry: ActiveRun): boolean {
    return this.#active.get(entry.run.state.id) === entry
  }
}

import type { Deployment, DeploymentStatus, ObjectStorageKeys } from '@pool/contract'
import type { Sql } from '@pool/database/client'
import type { Caller, Rejection } from '../allocation/domain/types.ts'
import type { AllocationService } from '../allocation/service.ts'
import type { ValidationOutcome } from '../credentials/service.ts'
import type { DuplicateRequest, Idempotency, IdempotencyClaim } from '../idempotency/idempotency.ts'
import { Notifier, type TailOutcome, tailLog } from './deployment-log.ts'
import { type SpecResult, toRecord } from './domain/spec.ts'
import type { AccessKeyPair, CreateDecision, CreateOutcome, DeploymentSpec, RunState } from './domain/types.ts'
import { createDeploymentRepository, type DeploymentRepository, type StoredCreateDecision } from './repository.ts'
import { ReservationClient, type ReservationOperations } from './reservation.ts'
import { Runner, type RunnerOptions } from './runner.ts'

export interface DeploymentServiceOptions
  extends Omit<RunnerOptions, 'repository' | 'reservations' | 'reservationRenewalMs' | 'onLogChanged'> {
  readonly sql: Sql
  readonly allocations: Pick<AllocationService, 'reserve'> & ReservationOperations
  readonly idempotency: Pick<Idempotency, 'replayThenExecute'>
  readonly parseSpec: (body: unknown) => SpecResult
  /** Limited per caller, so that deployments cannot be used to try credentials faster than the validation routes. */
  readonly validateKeys: (keys: ObjectStorageKeys, address: string | null) => Promise<ValidationOutcome>
  /** A new UUID. */
  readonly newId: () => string
  /** Milliseconds. */
  readonly statementTimeoutMs: number
  readonly reservationTtlMs: number
}

export type GetDeploymentOutcome = { readonly kind: 'found'; readonly deployment: Deployment } | Rejection<'not-found'>

export interface DeploymentListQuery {
  readonly status?: DeploymentStatus | undefined
  readonly limit?: number | undefined
  /** The `nextCursor` of the page before. */
  readonly cursor?: string | undefined
}

export interface DeploymentPage {
  readonly deployments: readonly Deployment[]
  /** Absent on the last page. */
  readonly nextCursor?: string
}

export type RemoveOutcome =
  | { readonly kind: 'cancelling'; readonly deployment: Deployment }
  | { readonly kind: 'removed' }
  | Rejection<'not-found'>

/** Maximum delay of a log line that another replica wrote. */
const LOG_POLL_MS = 500
/** Proxies commonly close a connection after a minute of silence. */
const LOG_IDLE_MS = 15_000
const DEFAULT_PAGE_SIZE = 100
const MAX_PAGE_SIZE = 1_000
const QUEUE_FULL_RETRY_S = 30

const toDecision = (stored: StoredCreateDecision): CreateDecision =>
  stored.outcome === 'created' ? { kind: 'created', id: stored.id } : { kind: stored.outcome }

/** Deployments, from the request to the end of the run. */
export class DeploymentService {
  readonly #options: DeploymentServiceOptions
  readonly #repository: DeploymentRepository
  readonly #reservations: ReservationClient
  readonly #notifier = new Notifier()
  readonly #runner: Runner

  constructor(options: DeploymentServiceOptions) {
    const { sql, statementTimeoutMs, leaseMs, reservationTtlMs } = options
    this.#options = options
    this.#repository = createDeploymentRepository(sql, { timeoutMs: statementTimeoutMs, leaseMs })
    this.#reservations = new ReservationClient(options.allocations)
    this.#runner = new Runner({
      ...options,
      repository: this.#repository,
      reservations: this.#reservations,
      reservationRenewalMs: reservationTtlMs / 3,
      onLogChanged: id => this.#notifier.notify(id),
    })
  }

  /**
   * Validates the request, the prerequisites of this process and the credentials before anything changes. Then reserves
   * the name; only a request that has its name becomes a deployment.
   */
  async create(body: unknown, caller: Caller, key: string | undefined): Promise<CreateOutcome> {
    const parsed = this.#options.parseSpec(body)
    if (parsed.kind !== 'valid') return parsed
    const { spec, credentials } = parsed
    return this.#options.idempotency.replayThenExecute<CreateDecision>(key, ['deployment', spec, credentials], {
      execute: async claim =>
        (await this.#findObstacle(spec, credentials, caller)) ??
        this.#reserveAndInsert(spec, credentials, caller, key, claim),
      replay: stored => toDecision(stored as StoredCreateDecision),
    })
  }

  async get(id: string): Promise<GetDeploymentOutcome> {
    const deployment = await this.#repository.find(id)
    return deployment ? { kind: 'found', deployment } : { kind: 'not-found' }
  }

  /** Newest first. */
  async list({ status, limit = DEFAULT_PAGE_SIZE, cursor }: DeploymentListQuery): Promise<DeploymentPage> {
    const size = Math.min(limit, MAX_PAGE_SIZE)
    const before = cursor === undefined ? undefined : Number(cursor)
    const rows = await this.#repository.list({ status, before, limit: size + 1 })
    const page = rows.slice(0, size)
    const last = page.at(-1)
    const deployments = page.map(({ deployment }) => deployment)
    return rows.length > size && last ? { deployments, nextCursor: String(last.number) } : { deployments }
  }

  /**
   * Cancels an unfinished deployment; deletes a finished one and releases its name. Infrastructure stays: destroying it
   * needs credentials, which are not stored, and a bucket with its backups must outlive its cluster.
   */
  async remove(id: string): Promise<RemoveOutcome> {
    const cancelled = await this.#repository.cancel(id)
    if (cancelled) {
      this.#runner.cancel(id)
      return { kind: 'cancelling', deployment: cancelled }
    }
    const reservation = await this.#repository.findReservation(id)
    if (!reservation) return { kind: 'not-found' }
    // The name first: after a crash between the two, the deployment can still be removed again.
    await this.#reservations.release({ id, ...reservation })
    return (await this.#repository.delete(id)) ? { kind: 'removed' } : { kind: 'not-found' }
  }

  async tailLog(id: string, after: number, signal: AbortSignal): Promise<TailOutcome> {
    const { now } = this.#options
    const [repository, notifier] = [this.#repository, this.#notifier]
    return tailLog({ repository, notifier, pollMs: LOG_POLL_MS, idleMs: LOG_IDLE_MS, now }, id, after, signal)
  }

  countByStatus() {
    return this.#repository.countByStatus()
  }

  /** Runs in this process, queued ones included. */
  get activeCount(): number {
    return this.#runner.activeCount
  }

  /** See `Runner.tick`. */
  async tick(): Promise<void> {
    await this.#runner.tick()
  }

  async stop(): Promise<void> {
    await this.#runner.stop()
  }

  /** Why the deployment cannot be created now; null if it can. */
  async #findObstacle(
    spec: DeploymentSpec,
    credentials: AccessKeyPair | null,
    caller: Caller,
  ): Promise<CreateDecision | null> {
    const { provisioner, validateKeys } = this.#options
    const missing = await provisioner.preflight()
    if (missing !== null) return { kind: 'provisioning-unavailable', detail: missing }
    if (!this.#runner.hasCapacity()) {
      const detail = 'Deployment queue is full, or the server is shutting down.'
      return { kind: 'provisioning-unavailable', detail, retryAfterSeconds: QUEUE_FULL_RETRY_S }
    }
    if (!credentials || !spec.storage) return null
    const outcome = await validateKeys({ region: spec.storage.region, ...credentials }, caller.address)
    if (outcome.kind === 'too-many-attempts') {
      return { ...outcome, detail: 'Too many credential checks from your address.' }
    }
    const { kind, message } = outcome
    if (kind === 'unavailable') return { kind: 'object-storage-unavailable', detail: message }
    if (kind === 'accepted') return null
    return { kind: 'invalid-deployment', faults: [{ field: 'objectStorageAccessKey', detail: message }] }
  }

  async #reserveAndInsert(
    spec: DeploymentSpec,
    credentials: AccessKeyPair | null,
    caller: Caller,
    key: string | undefined,
    claim: IdempotencyClaim | null,
  ): Promise<CreateDecision | DuplicateRequest> {
    const reservation = await this.#reserveName(spec, caller, key)
    if (reservation.kind !== 'reserved') return reservation
    const { token: reservationToken } = reservation
    const id = this.#options.newId()
    const stored = await this.#repository.insert({ id, record: toRecord(spec, credentials), reservationToken }, claim)
    if ('kind' in stored) {
      // A concurrent request with the same key was faster. It has the same reservation, unless it has ended since.
      const isUnused = reservationToken !== null && !(await this.#repository.hasReservationToken(reservationToken))
      if (isUnused) await this.#reservations.release({ id, spec, reservationToken })
      return stored
    }
    const state: RunState = {
      id,
      generation: 1,
      spec,
      reservationToken,
      result: null,
      isCancelled: false,
      pendingError: null,
      lineCount: 0,
    }
    if (stored.outcome === 'created') this.#runner.submit(state, credentials)
    else await this.#reservations.release(state)
    return toDecision(stored)
  }

  async #reserveName(
    spec: DeploymentSpec,
    caller: Caller,
    key: string | undefined,
  ): Promise<{ readonly kind: 'reserved'; readonly token: string | null } | Rejection<'subdomain-conflict'>> {
    if (!spec.name) return { kind: 'reserved', token: null }
    // Derived from the request's key, so that a repeated request gets the same reservation.
    const reservationKey = key === undefined ? undefined : `deployment ${key}`
    const command = { ...spec.name, createdBy: `deployment of ${spec.orgName}` }
    const outcome = await this.#options.allocations.reserve(command, caller, reservationKey)
    // All other rejections concern the form of the name, which has been validated.
    return outcome.kind === 'granted'
      ? { kind: 'reserved', token: outcome.reservationToken }
      : { kind: 'subdomain-conflict' }
  }
}

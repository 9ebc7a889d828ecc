import type { Deployment, DeploymentStatus, DomainCheck } from '@pool/contract'
import type { Sql } from '@pool/runtime/database/client'
import type { Writer } from '@pool/runtime/database/writer'
import type { Caller, Rejection } from '../allocation/domain/types.ts'
import {
  type DuplicateRequest,
  duplicateRequest,
  type Idempotency,
  type IdempotencyClaim,
} from '../idempotency/idempotency.ts'
import { createToken } from '../lib/token.ts'
import { type CallerWithToken, DeploymentCalls, type RemoveOutcome } from './calls.ts'
import { Notifier, type TailOutcome, tailLog } from './deployment-log.ts'
import { type ChangeableDeployment, type SpecResult, toRecord } from './domain/spec.ts'
import type {
  AccessKeyPair,
  CreateDecision,
  CreateOutcome,
  DeploymentSpec,
  PlanOutcome,
  RunState,
  StartOutcome,
  UnlockOutcome,
} from './domain/types.ts'
import type { DomainProof, Proof } from './domain-proof.ts'
import { type DeploymentHistoryPage, type DeploymentHistoryQuery, listDeploymentHistory } from './history.ts'
import { createFindObstacle, type FindObstacle, type ValidateKeys } from './obstacles.ts'
import { toRemainsDetail } from './remains.ts'
import { createDeploymentRepository, type DeploymentRepository, type StoredCreateDecision } from './repository.ts'
import { ReservationClient, type ReservationOperations } from './reservation.ts'
import { createRunRepository } from './run-repository.ts'
import { Runner, type RunnerOptions } from './runner.ts'

export interface DeploymentServiceOptions
  extends Omit<RunnerOptions, 'repository' | 'reservations' | 'reservationRenewalMs' | 'onLogChanged'> {
  readonly sql: Sql
  /** For the reads of requests. */
  readonly readSql: Sql
  readonly writer: Pick<Writer, 'write'>
  readonly allocations: ReservationOperations
  readonly idempotency: Pick<Idempotency, 'replayThenExecute' | 'isExecuted'>
  readonly parseSpec: (body: unknown) => SpecResult
  readonly parseChange: (body: unknown, deployment: ChangeableDeployment) => SpecResult
  readonly validateKeys: ValidateKeys
  readonly domainProof: Pick<DomainProof, 'prove'>
  /** A new UUID. */
  readonly newId: () => string
  /** Milliseconds. */
  readonly statementTimeoutMs: number
  readonly reservationTtlMs: number
  readonly nameCoolOffMs: number
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

/** Maximum delay of a log line that another replica wrote. */
const LOG_POLL_MS = 500
/** Proxies commonly close a connection after a minute of silence. */
const LOG_IDLE_MS = 15_000
const DEFAULT_PAGE_SIZE = 100
const MAX_PAGE_SIZE = 1_000

const toDecision = (stored: StoredCreateDecision, deploymentToken: string | null): CreateDecision => {
  if (stored.outcome !== 'created') return { kind: stored.outcome }
  if (deploymentToken === null) throw new Error('the stored result of a deployment has no token')
  return { kind: 'created', id: stored.id, deploymentToken }
}

/** Deployments, from the request to the end of the run. */
export class DeploymentService {
  readonly #options: DeploymentServiceOptions
  readonly #repository: DeploymentRepository
  readonly #reservations: ReservationClient
  readonly #notifier = new Notifier()
  readonly #runner: Runner
  readonly #findObstacle: FindObstacle
  readonly #calls: DeploymentCalls

  constructor(options: DeploymentServiceOptions) {
    const { sql, readSql, writer, statementTimeoutMs, leaseMs, reservationTtlMs, nameCoolOffMs } = options
    this.#options = options
    const times = { timeoutMs: statementTimeoutMs, leaseMs, coolOffMs: nameCoolOffMs }
    this.#repository = createDeploymentRepository(readSql, writer, times)
    this.#reservations = new ReservationClient(options.allocations)
    this.#runner = new Runner({
      ...options,
      repository: createRunRepository(sql, times),
      reservations: this.#reservations,
      reservationRenewalMs: reservationTtlMs / 3,
      onLogChanged: id => this.#notifier.notify(id),
    })
    this.#findObstacle = createFindObstacle({ ...options, runner: this.#runner })
    this.#calls = new DeploymentCalls({
      ...options,
      repository: this.#repository,
      reservations: this.#reservations,
      runner: this.#runner,
      findObstacle: this.#findObstacle,
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
      execute: async claim => {
        const decision = await this.#decide(spec, credentials, caller, key, claim)
        // What conflicts may be the deployment that a concurrent request with this key created.
        const isConflict = ['fqdn-remains', 'subdomain-conflict', 'domain-not-proven'].includes(decision.kind)
        return isConflict && claim && (await this.#options.idempotency.isExecuted(claim)) ? duplicateRequest : decision
      },
      replay: (stored, token) => toDecision(stored as StoredCreateDecision, token),
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
   * Applies the current module again: resumes after a failure, brings a new version of the module or new input, or
   * installs again after a destroy.
   */
  async apply(id: string, body: unknown, caller: CallerWithToken): Promise<StartOutcome> {
    return this.#calls.start('apply', id, body, caller)
  }

  /** Destroys the infrastructure but for the bucket, then releases the name. */
  async destroy(id: string, body: unknown, caller: CallerWithToken): Promise<StartOutcome> {
    return this.#calls.start('destroy', id, body, caller)
  }

  async plan(id: string, body: unknown, caller: CallerWithToken, signal: AbortSignal): Promise<PlanOutcome> {
    return this.#calls.plan(id, body, caller, signal)
  }

  /** Infrastructure is never destroyed here: that needs credentials, which are not stored. */
  async remove(id: string, shouldAbandon: boolean, caller: CallerWithToken): Promise<RemoveOutcome> {
    return this.#calls.remove(id, shouldAbandon, caller)
  }

  /** Cancels a run in progress. Unlike `remove`, it keeps a deployment whose run has ended. */
  async cancel(id: string, caller: CallerWithToken): Promise<RemoveOutcome> {
    return this.#calls.cancel(id, caller)
  }

  /** What was done to deployments, also to deleted ones; newest first. */
  async history(query: DeploymentHistoryQuery): Promise<DeploymentHistoryPage> {
    return listDeploymentHistory(this.#options.readSql, query, this.#options.statementTimeoutMs)
  }

  async unlock(id: string, caller: Caller): Promise<UnlockOutcome> {
    return this.#calls.unlock(id, caller)
  }

  /** What a deployment of this domain that is created now would find. Changes nothing. */
  async checkDomain(domain: string, key: string | undefined): Promise<DomainCheck> {
    const obstacle = await this.#findDomainObstacle(domain)
    const claimant = { spec: { name: null, sovereignFQDN: domain }, lineageId: null, idempotencyKey: key }
    const proven = await this.#options.domainProof.prove(claimant)
    return {
      domain,
      available: obstacle === null,
      ...obstacle,
      ...(proven.kind === 'proven'
        ? { proof: proven.proof ? 'proven' : 'not-required' }
        : { proof: proven.kind === 'dns-unavailable' ? 'unknown' : 'missing', proofDetail: proven.detail }),
    }
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

  /** What an earlier deployment left under the FQDN. A deployment that is up is a conflict instead. */
  async #findRemains({ sovereignFQDN }: DeploymentSpec): Promise<CreateDecision | null> {
    const remains = await this.#repository.findRemains(sovereignFQDN, null)
    if (!remains || (await this.#repository.isTaken(sovereignFQDN))) return null
    return { kind: 'fqdn-remains', detail: toRemainsDetail(sovereignFQDN, remains) }
  }

  async #findDomainObstacle(domain: string): Promise<Pick<DomainCheck, 'reason' | 'detail'> | null> {
    const parsed = this.#options.parseSpec({ sovereignDomainMode: 'byo', sovereignFQDN: domain })
    // The other fields are absent, so the domain is never the only fault.
    const fault = parsed.kind === 'valid' ? undefined : parsed.faults.find(({ field }) => field === 'sovereignFQDN')
    if (fault) return { reason: 'in-pool', detail: fault.detail }
    if (await this.#repository.isTaken(domain)) {
      return { reason: 'fqdn-conflict', detail: `Another deployment has ${domain}; destroy and delete it first.` }
    }
    const remains = await this.#repository.findRemains(domain, null)
    return remains ? { reason: 'fqdn-remains', detail: toRemainsDetail(domain, remains) } : null
  }

  async #decide(
    spec: DeploymentSpec,
    credentials: AccessKeyPair | null,
    caller: Caller,
    key: string | undefined,
    claim: IdempotencyClaim | null,
  ): Promise<CreateDecision | DuplicateRequest> {
    const obstacle = await this.#findObstacle(spec, credentials, caller)
    if (obstacle) return obstacle
    const proven = await this.#options.domainProof.prove({ spec, lineageId: null, idempotencyKey: key })
    if (proven.kind !== 'proven') return proven
    return (
      (await this.#findRemains(spec)) ?? this.#reserveAndInsert(spec, credentials, proven.proof, caller, key, claim)
    )
  }

  async #reserveAndInsert(
    spec: DeploymentSpec,
    credentials: AccessKeyPair | null,
    proof: Proof | null,
    caller: Caller,
    key: string | undefined,
    claim: IdempotencyClaim | null,
  ): Promise<CreateDecision | DuplicateRequest> {
    // Derived from the request's key, so that a repeated request gets the same reservation.
    const reservationKey = key === undefined ? undefined : `deployment ${key}`
    const reservation = await this.#reservations.reserve(spec, caller, reservationKey)
    if (reservation.kind !== 'reserved') return reservation
    const { tokenHash: reservationTokenHash } = reservation
    const [id, lineageId] = [this.#options.newId(), this.#options.newId()]
    const holder = { id, spec, lineageId, reservationTokenHash }
    const { token: deploymentToken, tokenHash } = createToken()
    const record = toRecord(spec, credentials)
    const stored = await this.#repository.insert(
      { ...holder, name: spec.name, record, tokenHash, proof, caller },
      claim,
      claim?.sealToken(deploymentToken) ?? null,
    )
    if ('kind' in stored) {
      // A concurrent request with the same key was faster. It has the same reservation, unless it has ended since.
      const isUnused = reservationTokenHash && !(await this.#repository.hasReservation(reservationTokenHash))
      if (isUnused) await this.#reservations.release(holder)
      return stored
    }
    const state: RunState = {
      ...holder,
      generation: 1,
      operation: 'create',
      attempt: 1,
      hasInfrastructure: false,
      isApplied: false,
      result: null,
      stateLock: null,
      knownState: null,
      hasCreatedBucket: false,
      isCancelled: false,
      pendingError: null,
      lineCount: 0,
    }
    if (stored.outcome === 'created') this.#runner.submit(state, credentials)
    else await this.#reservations.release(holder)
    return toDecision(stored, deploymentToken)
  }
}

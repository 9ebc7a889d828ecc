import { randomUUID } from 'node:crypto'
import type { Deployment, DeploymentHistoryEntry, DeploymentStatus, DomainCheck } from '@pool/contract'
import type { Sql } from '@pool/runtime/database/client'
import type { Writer } from '@pool/runtime/database/writer'
import type { Rejection } from '../allocation/domain/types.ts'
import type { DuplicateRequest, IdempotencyClaim } from '../idempotency/idempotency.ts'
import { type Page, type PageQuery, readPage } from '../lib/paginate.ts'
import { createToken } from '../lib/token.ts'
import type { Caller } from '../naming/naming.ts'
import { createBucketClaims } from './bucket-claims.ts'
import { type BucketUse, endFormerClaim, findBucketUse } from './commands/bucket.ts'
import { type CallDependencies, type CallerWithToken, type CancelOutcome, toRemainsDetail } from './commands/call.ts'
import { createPlanner } from './commands/plan.ts'
import { cancelRun, type RemoveOutcome, removeDeployment } from './commands/remove.ts'
import { startOperation } from './commands/start.ts'
import { unlockState } from './commands/unlock.ts'
import { Notifier, type TailOutcome, tailLog } from './deployment-log.ts'
import { toRecord } from './domain/spec.ts'
import type {
  AccessKeyPair,
  CreateDecision,
  CreateOutcome,
  DeploymentSpec,
  PlanOutcome,
  StartOutcome,
  UnlockOutcome,
} from './domain/types.ts'
import { type Proof, ReservationClient, type ReservationOperations } from './fqdn.ts'
import {
  createDeploymentRepository,
  type DeploymentHistoryQuery,
  type StatusCount,
  type StoredCreateDecision,
} from './repository.ts'
import { createRunRepository } from './run-repository.ts'
import { Runner, type RunnerOptions } from './runner.ts'

export interface DeploymentServiceOptions
  extends Omit<CallDependencies, 'repository' | 'reservations' | 'runner' | 'bucketClaims'>,
    Omit<RunnerOptions, 'repository' | 'reservations' | 'reservationRenewalMs' | 'onLogChanged'> {
  readonly sql: Sql
  /** For the reads of requests. */
  readonly readSql: Sql
  readonly writer: Pick<Writer, 'write'>
  readonly allocations: ReservationOperations
  /** Milliseconds. */
  readonly statementTimeoutMs: number
  readonly reservationTtlMs: number
  readonly nameCoolOffMs: number
}

export type GetDeploymentOutcome = { readonly kind: 'found'; readonly deployment: Deployment } | Rejection<'not-found'>

export interface DeploymentListQuery extends PageQuery {
  readonly status?: DeploymentStatus | undefined
  readonly search?: string | undefined
}

/** What requests do with deployments. */
export interface DeploymentOperations {
  create(body: unknown, caller: Caller, key: string | undefined): Promise<CreateOutcome>
  get(id: string): Promise<GetDeploymentOutcome>
  /** Newest first. */
  list(query: DeploymentListQuery): Promise<Page<Deployment>>
  apply(id: string, body: unknown, caller: CallerWithToken): Promise<StartOutcome>
  destroy(id: string, body: unknown, caller: CallerWithToken): Promise<StartOutcome>
  plan(id: string, body: unknown, caller: CallerWithToken, signal: AbortSignal): Promise<PlanOutcome>
  remove(id: string, shouldAbandon: boolean, caller: CallerWithToken): Promise<RemoveOutcome>
  /** `isForced`: without waiting for what Terraform is creating. */
  cancel(id: string, caller: CallerWithToken, isForced?: boolean): Promise<CancelOutcome>
  unlock(id: string, caller: Caller, key?: string): Promise<UnlockOutcome>
  /** What was done to deployments, also to deleted ones; newest first. */
  history(query: DeploymentHistoryQuery): Promise<Page<DeploymentHistoryEntry>>
  tailLog(id: string, after: number, signal: AbortSignal): Promise<TailOutcome>
}

/** Deployments, from the request to the end of the run. */
export interface DeploymentService extends DeploymentOperations {
  checkDomain(domain: string, key: string | undefined): Promise<DomainCheck>
  countByStatus(): Promise<readonly StatusCount[]>
  /** Runs in this process, queued ones included. */
  activeCount(): number
  /** See `Runner.tick`. */
  tick(): Promise<void>
  stop(): Promise<void>
}

/** One request to create a deployment. `claim` is that of its key. */
interface Creation {
  readonly spec: DeploymentSpec
  readonly credentials: AccessKeyPair | null
  readonly adoptBucket: boolean
  readonly caller: Caller
  readonly key: string | undefined
  readonly claim: IdempotencyClaim | null
}

const toDecision = (stored: StoredCreateDecision, deploymentToken: string | null): CreateDecision => {
  if (stored.outcome !== 'created') return { kind: stored.outcome }
  if (deploymentToken === null) throw new Error('the stored result of a deployment has no token')
  return { kind: 'created', id: stored.id, deploymentToken }
}

/** What is in the way of a new lineage, or the use of its bucket. A deployment that is up is a conflict instead. */
const findUse = async (deps: CallDependencies, creation: Creation) => {
  const { sovereignFQDN } = creation.spec
  const occupant = await deps.repository.findOccupant(sovereignFQDN)
  if (occupant === 'deployment') return { kind: 'usable', use: null } as const
  if (occupant === 'infrastructure') return { kind: 'fqdn-remains', detail: toRemainsDetail(sovereignFQDN) } as const
  return findBucketUse(deps, { ...creation, lineageId: null, hasBucket: false })
}

const reserveAndInsert = async (
  deps: CallDependencies,
  { spec, credentials, caller, key, claim }: Creation,
  proof: Proof | null,
  bucketUse: BucketUse,
): Promise<CreateDecision | DuplicateRequest> => {
  const { repository, reservations, runner } = deps
  // Derived from the request's key, so that a repeated request gets the same reservation.
  const reservationKey = key === undefined ? undefined : `deployment ${key}`
  const reservation = await reservations.reserve(spec, caller, reservationKey)
  if (reservation.kind !== 'reserved') return reservation
  const { tokenHash: reservationTokenHash } = reservation
  const holder = { id: randomUUID(), spec, lineageId: randomUUID(), reservationTokenHash }
  const { token: deploymentToken, tokenHash } = createToken(claim?.token())
  const adoptsBucket = bucketUse?.kind === 'adopted'
  const record = toRecord(spec, credentials)
  const stored = (await endFormerClaim(deps, spec, bucketUse, caller))
    ? ({ outcome: 'bucket-conflict' } as const)
    : await repository.insert({ ...holder, name: spec.name, record, tokenHash, proof, adoptsBucket, caller }, claim)
  if ('outcome' in stored && stored.outcome === 'created') runner.submitNew(holder, credentials, adoptsBucket)
  // If a concurrent request with the same key was faster, it has the same reservation, unless that has ended since.
  else if (!reservationTokenHash || !(await repository.hasReservation(reservationTokenHash))) {
    await reservations.release(holder)
  }
  return 'outcome' in stored ? toDecision(stored, deploymentToken) : stored
}

const decide = async (deps: CallDependencies, creation: Creation): Promise<CreateDecision | DuplicateRequest> => {
  const { spec, credentials, caller, key } = creation
  const obstacle = await deps.runner.findObstacle(spec, credentials, caller)
  if (obstacle) return obstacle
  const proven = await deps.domainProof.prove({ spec, lineageId: null, idempotencyKey: key })
  if (proven.kind !== 'proven') return proven
  const bucket = await findUse(deps, creation)
  return bucket.kind === 'usable' ? reserveAndInsert(deps, creation, proven.proof, bucket.use) : bucket
}

/**
 * Validates the request, the prerequisites of this process and the credentials before anything changes. Then reserves
 * the name; only a request that has its name becomes a deployment.
 */
const createDeployment = async (
  deps: CallDependencies,
  body: unknown,
  caller: Caller,
  key: string | undefined,
): Promise<CreateOutcome> => {
  const parsed = deps.parseSpec(body)
  if (parsed.kind !== 'valid') return parsed
  const { spec, credentials, adoptBucket = false } = parsed
  const content = ['deployment', spec, credentials, ...(adoptBucket ? ['adopts its bucket'] : [])]
  return deps.idempotency.replayThenExecute<CreateDecision>(key, content, {
    execute: claim => decide(deps, { spec, credentials, adoptBucket, caller, key, claim }),
    success: 'created',
    replay: (stored, token) => toDecision(stored as StoredCreateDecision, token),
  })
}

const findDomainObstacle = async (
  { parseSpec, repository }: CallDependencies,
  domain: string,
): Promise<Pick<DomainCheck, 'reason' | 'detail'> | null> => {
  const parsed = parseSpec({ sovereignDomainMode: 'byo', sovereignFQDN: domain })
  // The other fields are absent, so the domain is never the only fault.
  const fault = parsed.kind === 'valid' ? undefined : parsed.faults.find(({ field }) => field === 'sovereignFQDN')
  if (fault) return { reason: 'in-pool', detail: fault.detail }
  const occupant = await repository.findOccupant(domain)
  if (occupant === 'deployment') {
    return { reason: 'fqdn-conflict', detail: `Another deployment has ${domain}; destroy and delete it first.` }
  }
  return occupant === null ? null : { reason: 'fqdn-remains', detail: toRemainsDetail(domain) }
}

/** What a deployment of this domain that is created now would find. Changes nothing. */
const checkDomain = async (deps: CallDependencies, domain: string, key: string | undefined): Promise<DomainCheck> => {
  const obstacle = await findDomainObstacle(deps, domain)
  const claimant = { spec: { name: null, sovereignFQDN: domain }, lineageId: null, idempotencyKey: key }
  const proven = await deps.domainProof.prove(claimant)
  return {
    domain,
    available: obstacle === null,
    ...obstacle,
    ...(proven.kind === 'proven'
      ? { proof: proven.proof ? 'proven' : 'not-required' }
      : { proof: proven.kind === 'dns-unavailable' ? 'unknown' : 'missing', proofDetail: proven.detail }),
  }
}

/** Maximum delay of a log line that another replica wrote. */
const LOG_POLL_MS = 500
/** Proxies commonly close a connection after a minute of silence. */
const LOG_IDLE_MS = 15_000

export const createDeploymentService = (options: DeploymentServiceOptions): DeploymentService => {
  const { sql, readSql, writer, statementTimeoutMs, leaseMs, reservationTtlMs, nameCoolOffMs, now } = options
  const times = { timeoutMs: statementTimeoutMs, leaseMs, coolOffMs: nameCoolOffMs }
  const repository = createDeploymentRepository(readSql, writer, times)
  const reservations = new ReservationClient(options.allocations)
  const notifier = new Notifier()
  const runner = new Runner({
    ...options,
    repository: createRunRepository(sql, times),
    reservations,
    reservationRenewalMs: reservationTtlMs / 3,
    onLogChanged: id => notifier.notify(id),
  })
  const bucketClaims = createBucketClaims(sql, times)
  const deps: CallDependencies = { ...options, repository, reservations, runner, bucketClaims }
  const tail = { repository, notifier, pollMs: LOG_POLL_MS, idleMs: LOG_IDLE_MS, now }

  return {
    create: (body, caller, key) => createDeployment(deps, body, caller, key),
    apply: (id, body, caller) => startOperation(deps, 'apply', id, body, caller),
    destroy: (id, body, caller) => startOperation(deps, 'destroy', id, body, caller),
    plan: createPlanner(deps),
    remove: (id, shouldAbandon, caller) => removeDeployment(deps, id, shouldAbandon, caller),
    cancel: (id, caller, isForced = false) => cancelRun(deps, id, isForced, caller),
    unlock: (id, caller, key) => unlockState(deps, id, caller, key),
    checkDomain: (domain, key) => checkDomain(deps, domain, key),
    history: query => repository.listHistory(query),
    tailLog: (id, after, signal) => tailLog(tail, id, after, signal),
    countByStatus: () => repository.countByStatus(),
    activeCount: () => runner.activeCount,
    tick: () => runner.tick(),
    stop: () => runner.stop(),

    async get(id) {
      const deployment = await repository.find(id)
      return deployment ? { kind: 'found', deployment } : { kind: 'not-found' }
    },

    async list(query) {
      const before = query.cursor === undefined ? undefined : Number(query.cursor)
      const read = (size: number) =>
        repository.list({ status: query.status, search: query.search, before, limit: size })
      const { items, nextCursor } = await readPage(query, read, ({ number }) => String(number))
      return { items: items.map(({ deployment }) => deployment), nextCursor }
    },
  }
}

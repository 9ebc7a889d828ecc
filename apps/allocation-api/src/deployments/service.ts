import type { Deployment, DeploymentHistoryEntry, DeploymentStatus, DomainCheck } from '@pool/contract'
import type { Sql } from '@pool/runtime/database/client'
import type { Writer } from '@pool/runtime/database/writer'
import type { Rejection } from '../allocation/domain/types.ts'
import { type Page, type PageQuery, readPage } from '../lib/paginate.ts'
import type { Caller } from '../naming/caller.ts'
import type { CallDependencies, CallerWithToken, CancelOutcome } from './commands/call.ts'
import { checkDomain, createDeployment } from './commands/create.ts'
import { createPlanner } from './commands/plan.ts'
import { cancelRun, type RemoveOutcome, removeDeployment } from './commands/remove.ts'
import { startOperation } from './commands/start.ts'
import { unlockState } from './commands/unlock.ts'
import { Notifier, type TailOutcome, tailLog } from './deployment-log.ts'
import type { CreateOutcome, PlanOutcome, StartOutcome, UnlockOutcome } from './domain/types.ts'
import { createDeploymentRepository, type DeploymentHistoryQuery, type StatusCount } from './repository.ts'
import { ReservationClient, type ReservationOperations } from './reservation.ts'
import { createRunRepository } from './run-repository.ts'
import { Runner, type RunnerOptions } from './runner.ts'

export interface DeploymentServiceOptions
  extends Omit<CallDependencies, 'repository' | 'reservations' | 'runner'>,
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
  cancel(id: string, caller: CallerWithToken): Promise<CancelOutcome>
  unlock(id: string, caller: Caller): Promise<UnlockOutcome>
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
  const deps: CallDependencies = { ...options, repository, reservations, runner }
  const tail = { repository, notifier, pollMs: LOG_POLL_MS, idleMs: LOG_IDLE_MS, now }

  return {
    create: (body, caller, key) => createDeployment(deps, body, caller, key),
    apply: (id, body, caller) => startOperation(deps, 'apply', id, body, caller),
    destroy: (id, body, caller) => startOperation(deps, 'destroy', id, body, caller),
    plan: createPlanner(deps),
    remove: (id, shouldAbandon, caller) => removeDeployment(deps, id, shouldAbandon, caller),
    cancel: (id, caller) => cancelRun(deps, id, caller),
    unlock: (id, caller) => unlockState(deps, id, caller),
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
      const read = (size: number) => repository.list({ status: query.status, before, limit: size })
      const { items, nextCursor } = await readPage(query, read, ({ number }) => String(number))
      return { items: items.map(({ deployment }) => deployment), nextCursor }
    },
  }
}

import { setTimeout as sleep } from 'node:timers/promises'
import type { DnsState } from '@pool/contract'
import type { Sql } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/time'
import type { Unavailable } from '../dns/domain/result.ts'
import type { DnsProvider } from '../dns/provider.ts'
import { type Caller, type NameRejection, validatePool } from '../naming/naming.ts'
import { runInSpan, type Tracer, traceStatements } from '../observability/domain/tracer.ts'
import { diffZone, type ZoneDiff, type ZoneDifferences } from './diff-zone.ts'
import { MAX_BATCH_SIZE, NOTHING_SYNCED, type SyncResult } from './domain/plan.ts'
import { isDecided, toDnsState, toWithdrawalState } from './domain/status.ts'
import {
  type Busy,
  createZoneLocker,
  type LockedZone,
  type ReconcilerSettings,
  type ReconcilerTools,
} from './locked-zone.ts'
import { type ComparedName, compareName, type PlannedAction, planAction, type RecordAction } from './name-records.ts'
import { createOperationsRepository } from './operations-repository.ts'
import { type ChangeOrphansOptions, changeOrphans, type OrphanChange, type OrphanChangeOutcome } from './orphans.ts'
import { ProviderClient } from './provider-client.ts'
import { createProviderMoves, type FormerRecord } from './provider-moves.ts'
import { createReconcilerRepository, type PendingCounts, type ZoneState } from './repository.ts'
import { republishZone, type TemplateChanges, type TemplateDiff } from './republish-zone.ts'
import {
  type NotStopped,
  type ResumeOptions,
  type ResumePlan,
  resumeZone,
  type StoppedZoneChanges,
} from './resume-zone.ts'
import { syncZone, ZoneSyncQueue } from './sync-zone.ts'
import { createDriftChecks, createMarkerChecks } from './zone-checks.ts'
import type { WithLock } from './zone-lock.ts'

export interface ReconcilerOptions extends ReconcilerSettings {
  readonly provider: DnsProvider
  readonly sql: Sql
  /** For the statements that acquire or release a lock; absent: `sql`. */
  readonly zoneSql?: Sql
  readonly withLock: WithLock
  /** Milliseconds. */
  readonly statementTimeoutMs: number
  readonly providerTimeoutMs: number
  /** The longest time that `waitUntilApplied` and the changes of an operator wait. */
  readonly commitWaitMs: number
  /** Absent: tracing is off. */
  readonly tracer?: Tracer | null
}

/** A name and the version of its desired records that the caller has just set. */
export interface DesiredVersion {
  readonly zone: string
  readonly subdomain: string
  readonly version: number
  /** The version is that of a release: the name can have another client since. */
  readonly isWithdrawal?: boolean
  /** Milliseconds to wait at most; absent: as long as a commit waits. */
  readonly waitMs?: number
}

/** Waits, for a bounded time, until the version is applied. Returns the status of the name, or of the withdrawal, then. */
export type WaitUntilApplied = (desired: DesiredVersion) => Promise<DnsState>

export interface RepairResult extends ZoneDifferences, PendingCounts {
  readonly kind: 'repaired'
}

export interface RepublishResult extends TemplateChanges, PendingCounts {
  readonly kind: 'republished'
}

export interface OrphanChangeResult extends OrphanChange, PendingCounts {
  readonly kind: 'changed'
}

export interface ResumeResult extends StoppedZoneChanges, PendingCounts {
  readonly kind: 'resumed'
}

/** Why a zone could not be read. */
type ZoneRejection = Unavailable | Busy | NameRejection

export type ResumeOutcome = ResumePlan | ResumeResult | NotStopped | { readonly kind: 'dns-writes-off' } | ZoneRejection

export type FormerRecordsOutcome =
  | { readonly kind: 'listed'; readonly records: readonly FormerRecord[] }
  | NameRejection

/** The pause before the next sync for a caller, after one that did not get to its name: another replica publishes it. */
const NOTHING_SYNCED_PAUSE_MS = 100

/** A sync that waits for another replica may wait for one that publishes its names meanwhile, so it looks often. */
const SYNC_LOCK_WAIT_MS = 500

/** What an operator does with a zone. */
export interface ZoneOperations {
  /** What `repair` would change. */
  preview(poolDomain: string): Promise<ZoneDiff | ZoneRejection>
  /** Checks the zone for drift now, and waits a bounded time until drifted and failed names are applied. */
  repair(poolDomain: string): Promise<RepairResult | ZoneRejection>
  /**
   * Brings the records of the active names to the current template, and waits a bounded time until they are applied.
   * Without a `caller`, only lists the changes.
   */
  republish(poolDomain: string, caller: Caller | null): Promise<TemplateDiff | RepublishResult | Busy | NameRejection>
  /**
   * Adopts the orphans of the zone or has them removed, and waits a bounded time until this is applied. Without a
   * `caller`, only lists them.
   */
  changeOrphans(
    poolDomain: string,
    change: ChangeOrphansOptions,
  ): Promise<OrphanChangeOutcome | OrphanChangeResult | ZoneRejection>
  /**
   * Starts the writes to a stopped zone again, and waits a bounded time until its names are applied. Without a `caller`,
   * only lists the differences.
   */
  resume(poolDomain: string, resume: ResumeOptions): Promise<ResumeOutcome>
  /** Up to `limit` records of earlier providers, after the first `offset`. */
  listFormerRecords(poolDomain: string, offset: number, limit: number): Promise<FormerRecordsOutcome>
}

/** What operators see of the records of one name. */
export interface NameInspection {
  /** The records of the name in the database and in the zone. */
  compareName(poolDomain: string, subdomain: string): Promise<ComparedName | ZoneRejection>
  /** What an action would change in the zone. */
  planAction(poolDomain: string, subdomain: string, action: RecordAction): Promise<PlannedAction | NameRejection>
}

export interface ZoneStates {
  listZoneStates(): Promise<ZoneState[]>
  /** Whether calls to the provider are suspended. */
  isCircuitOpen(): boolean
}

/** Keeps the provider's records equal to the desired records in the database. */
export interface Reconciler extends ZoneOperations, NameInspection, ZoneStates {
  readonly waitUntilApplied: WaitUntilApplied
  /**
   * Starts a sync of every zone with due names, which any replica, a crash or an outage may have left, and due drift checks. A
   * job to repeat.
   */
  syncDueZones(): Promise<void>
  /** Checks the markers that are due; see `createMarkerChecks`. A job to repeat. */
  checkMarkers(signal: AbortSignal): Promise<void>
  /** Ends all waits for records, also those that begin later, with what is published by then. */
  endWaits(): void
  /** Starts no more syncs and drift checks, and waits for those in flight. */
  stop(): Promise<void>
}

export const createReconciler = (options: ReconcilerOptions): Reconciler => {
  const { pools, commitWaitMs, now, random, observer, writesZones } = options
  const { tracer = null } = options
  const statements = { timeoutMs: options.statementTimeoutMs }
  const repository = traceStatements(
    tracer,
    'reconciler',
    createReconcilerRepository(options.sql, statements, options.zoneSql),
  )
  const operations = traceStatements(tracer, 'reconciler', createOperationsRepository(options.sql, statements))
  const moves = createProviderMoves(options.sql, statements)
  const { concurrency, hasZoneTtl = false } = options.provider
  const provider = new ProviderClient({
    provider: options.provider,
    timeoutMs: options.providerTimeoutMs,
    now,
    random,
    observer: {
      ...observer,
      onCircuitOpened: reason => observer.onCircuitOpened(reason, pools().managed.length + pools().draining.length),
    },
    tracer,
    writesZones,
  })
  const tools: ReconcilerTools = { ...options, repository, operations, provider, hasZoneTtl }
  const withZone = createZoneLocker(tools, options.withLock, concurrency)
  const drift = createDriftChecks(tools, withZone)
  const queues = new Map<string, ZoneSyncQueue>()
  let isStopping = false
  let hasEndedWaits = false
  const waits = new Set<(result: null) => void>()

  const reportError = (zone: string, error: unknown) => observer.onError('zone sync failed', error, { zone })

  /** Runs `work` on a zone of this service. */
  const inZone = async <Result>(
    poolDomain: string,
    work: (zone: LockedZone) => Promise<Result>,
  ): Promise<Result | Busy | NameRejection> =>
    validatePool(poolDomain, pools()) ?? (await withZone(poolDomain, work)) ?? { kind: 'busy' }

  const createQueue = (zone: string): ZoneSyncQueue => {
    const sync = () =>
      withZone(zone, syncZone, {
        acquire: claim => repository.findDue(zone, MAX_BATCH_SIZE, claim),
        waitMs: SYNC_LOCK_WAIT_MS,
      })
    const queue = new ZoneSyncQueue({
      sync: () => runInSpan(tracer, 'dns sync', { attributes: { 'pdm.zone': zone } }, sync),
      onEnded: outcome => observer.onSync(zone, outcome),
      onError: error => reportError(zone, error),
    })
    queues.set(zone, queue)
    return queue
  }

  const requestSync = (zone: string): Promise<SyncResult> =>
    isStopping || !writesZones ? Promise.resolve(NOTHING_SYNCED) : (queues.get(zone) ?? createQueue(zone)).request()

  /** Null: the sync has not ended at `deadline`, or when waits ended. It continues. */
  const requestSyncUntil = (zone: string, deadline: number): Promise<SyncResult | null> => {
    const { promise: ended, resolve } = Promise.withResolvers<null>()
    waits.add(resolve)
    if (hasEndedWaits) resolve(null)
    const synced = withTimeout(requestSync(zone), Math.max(0, deadline - performance.now())).catch(() => null)
    return Promise.race([ended, synced]).finally(() => waits.delete(resolve))
  }

  /** Waits until nothing is due in the zone, for `commitWaitMs` at most. Returns what is still not applied. */
  const settle = async (zone: string): Promise<PendingCounts> => {
    const deadline = performance.now() + commitWaitMs
    for (let hasMore = true; hasMore && performance.now() < deadline; ) {
      hasMore = (await requestSyncUntil(zone, deadline))?.hasMore ?? false
    }
    return repository.countPending(zone)
  }

  const waitUntilApplied: WaitUntilApplied = async ({ zone, subdomain, version, isWithdrawal = false, waitMs }) => {
    const deadline = performance.now() + (waitMs ?? commitWaitMs)
    let isTransient = false
    for (;;) {
      const result = await requestSyncUntil(zone, deadline)
      const failure = result?.failed.get(subdomain)
      if (failure) {
        const isInTime = performance.now() + failure.retryDelayMs < deadline
        isTransient = failure.isTransient && isInTime && !provider.isDown()
      }
      if ((result?.applied.get(subdomain) ?? 0) >= version) return { status: 'published' }
      try {
        // Another replica may have applied it: the table knows.
        const status = await repository.findStatus(zone, subdomain)
        const isOver = hasEndedWaits || isStopping || !writesZones || performance.now() >= deadline
        if (isOver || isDecided(status, version, isTransient)) {
          return isWithdrawal ? toWithdrawalState(status, version) : toDnsState(status)
        }
        if (!result?.hasMore) await sleep(failure && isTransient ? failure.retryDelayMs : NOTHING_SYNCED_PAUSE_MS)
      } catch (error) {
        // The caller's change is committed. That its status is unknown must not fail the response.
        reportError(zone, error)
        return { status: 'pending' }
      }
    }
  }

  return {
    waitUntilApplied,

    preview: poolDomain => inZone(poolDomain, zone => diffZone(zone, 'dry-run')),

    async repair(poolDomain) {
      const result = validatePool(poolDomain, pools()) ?? (await drift.check(poolDomain, true))
      return result.kind === 'compared' ? { ...result, kind: 'repaired', ...(await settle(poolDomain)) } : result
    },

    async republish(poolDomain, caller) {
      const rejection = validatePool(poolDomain, pools())
      const result = rejection ?? (await republishZone(tools, withZone, poolDomain, caller))
      if (result.kind !== 'planned' || !caller) return result
      return { ...result, kind: 'republished', ...(await settle(poolDomain)) }
    },

    async changeOrphans(poolDomain, change) {
      const result = await inZone(poolDomain, zone => changeOrphans(zone, change))
      if (result.kind !== 'orphans' || !change.caller) return result
      return { ...result, kind: 'changed', ...(await settle(poolDomain)) }
    },

    async resume(poolDomain, resume) {
      if (resume.caller && !writesZones) return validatePool(poolDomain, pools()) ?? { kind: 'dns-writes-off' }
      const result = await inZone(poolDomain, zone => resumeZone(zone, resume))
      if (result.kind !== 'planned' || !resume.caller) return result
      return { ...result, kind: 'resumed', ...(await settle(poolDomain)) }
    },

    async listFormerRecords(poolDomain, offset, limit) {
      const rejection = validatePool(poolDomain, pools())
      return rejection ?? { kind: 'listed', records: await moves.listFormerRecords(poolDomain, offset, limit) }
    },

    compareName: (poolDomain, subdomain) => inZone(poolDomain, zone => compareName(zone, subdomain)),

    async planAction(poolDomain, subdomain, action) {
      return validatePool(poolDomain, pools()) ?? planAction(tools, withZone, poolDomain, subdomain, action)
    },

    listZoneStates: () => repository.listZoneStates(),
    isCircuitOpen: () => provider.isCircuitOpen(),

    async syncDueZones() {
      if (writesZones) for (const zone of await repository.listDueZones()) void requestSync(zone)
      if (!isStopping) await drift.startDue()
      observer.onDatabaseReached()
    },

    checkMarkers: createMarkerChecks(tools, withZone),

    endWaits() {
      hasEndedWaits = true
      for (const end of waits) end(null)
    },

    async stop() {
      isStopping = true
      await Promise.all([...Array.from(queues.values(), queue => queue.stop()), drift.whenIdle()])
    },
  }
}

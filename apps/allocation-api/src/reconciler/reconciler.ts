import { setTimeout as sleep } from 'node:timers/promises'
import type { DnsState } from '@pool/contract'
import type { Sql } from '@pool/database/client'
import type { Unavailable } from '../dns/domain/result.ts'
import type { RecordTemplate } from '../dns/domain/rrset.ts'
import type { DnsProvider } from '../dns/provider.ts'
import type { Caller } from '../naming/caller.ts'
import { type NameRejection, type Pools, validatePool } from '../naming/naming.ts'
import { runInSpan, type Tracer, traceStatements } from '../observability/domain/tracer.ts'
import type { ZoneStopObserver } from './check-markers.ts'
import type { ZoneDiff } from './diff-zone.ts'
import { isDecided, toDnsState, toWithdrawalState } from './domain/status.ts'
import { DriftDetector, type DriftObserver } from './drift-detector.ts'
import { MarkerChecker } from './marker-checker.ts'
import { compareName, type NameRecordsContext, planAction, type RecordAction } from './name-records.ts'
import { type ChangeOrphansOptions, changeOrphans, createOrphanRepository, type OrphanChange } from './orphans.ts'
import { type ProviderCallObserver, ProviderClient } from './provider-client.ts'
import { createReconcilerRepository } from './repository.ts'
import { republishZone, type TemplateDiff } from './republish-zone.ts'
import {
  createResumeRepository,
  type NotStopped,
  type ResumeOptions,
  type ResumePlan,
  resumeZone,
} from './resume-zone.ts'
import { NOTHING_SYNCED, type SyncResult, syncZone } from './sync-zone.ts'
import { type Busy, limitZones, type ZoneLocks } from './zone-lock.ts'
import { type SyncOutcome, ZoneSyncQueue } from './zone-sync-queue.ts'
import { createZoneWritesRepository, type FormerRecord } from './zone-writes.ts'

export interface ReconcilerObserver
  extends Omit<ProviderCallObserver, 'onError' | 'onCircuitOpened'>,
    Omit<DriftObserver, 'onError'>,
    ZoneStopObserver {
  /** Calls to the provider are suspended, for `zones` zones. */
  onCircuitOpened(reason: string, zones: number): void
  onSync(zone: string, outcome: SyncOutcome): void
  onError(
    event: 'dns provider threw an unexpected error' | 'zone sync failed',
    error: unknown,
    context?: { readonly zone: string },
  ): void
}

export interface ReconcilerOptions {
  readonly provider: DnsProvider
  /** Stored with each zone that it writes. A zone of another kind is not written. */
  readonly providerKind: string
  /** False: reads and plans only. */
  readonly writesZones: boolean
  readonly sql: Sql
  readonly zoneLocks: Pick<ZoneLocks, 'withLock'>
  readonly pools: () => Pools
  readonly recordTemplate: RecordTemplate
  /** Milliseconds. */
  readonly statementTimeoutMs: number
  readonly providerTimeoutMs: number
  /** The longest time that `waitUntilApplied` and `repair` wait. */
  readonly commitWaitMs: number
  readonly driftIntervalMs: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** From 0 to 1. */
  readonly random: () => number
  readonly observer: ReconcilerObserver
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
}

/** Waits, for a bounded time, until the version is applied. Returns the status of the name, or of the withdrawal, then. */
export type WaitUntilApplied = (desired: DesiredVersion) => Promise<DnsState>

export interface RepairResult extends Omit<ZoneDiff, 'kind'> {
  readonly kind: 'repaired'
  /** Names that are not applied yet, and how many of these failed at their last attempt. */
  readonly pending: number
  readonly failing: number
}

export interface RepublishResult extends Omit<TemplateDiff, 'kind'>, Pick<RepairResult, 'pending' | 'failing'> {
  readonly kind: 'republished'
}

export type RepublishOutcome = TemplateDiff | RepublishResult | Busy | NameRejection

export interface OrphanChangeResult extends Omit<OrphanChange, 'kind'>, Pick<RepairResult, 'pending' | 'failing'> {
  readonly kind: 'changed'
}

export type OrphanOutcome = OrphanChange | OrphanChangeResult | Unavailable | Busy | NameRejection

export interface ResumeResult extends Omit<ResumePlan, 'kind'>, Pick<RepairResult, 'pending' | 'failing'> {
  readonly kind: 'resumed'
}

export type ResumeOutcome =
  | ResumePlan
  | ResumeResult
  | NotStopped
  | { readonly kind: 'dns-writes-off' }
  | Unavailable
  | Busy
  | NameRejection

export type FormerRecordsOutcome =
  | { readonly kind: 'listed'; readonly records: readonly FormerRecord[] }
  | NameRejection

export type ConvergeOutcome = ZoneDiff | RepairResult | Unavailable | Busy | NameRejection

export type Reconciler = ReturnType<typeof createReconciler>

/** The pause before the next sync for a caller, after one that had nothing to do: another replica publishes the name. */
const NOTHING_SYNCED_PAUSE_MS = 100

/** The promise's value, or null after `timeoutMs`. */
const valueOrNull = async <Value>(promise: Promise<Value>, timeoutMs: number): Promise<Value | null> => {
  // Each waiting request has one, and the error of an aborted sleep costs more than all of this.
  const { promise: timedOut, resolve } = Promise.withResolvers<null>()
  const timer = setTimeout(resolve, Math.max(0, timeoutMs), null)
  return Promise.race([promise, timedOut]).finally(() => clearTimeout(timer))
}

/** Keeps the provider's records equal to the desired records in the database. */
export const createReconciler = (options: ReconcilerOptions) => {
  const { pools, recordTemplate, commitWaitMs, driftIntervalMs, now, random, observer } = options
  const { providerKind, writesZones } = options
  const { tracer = null } = options
  const repository = traceStatements(
    tracer,
    'reconciler',
    createReconcilerRepository(options.sql, { timeoutMs: options.statementTimeoutMs }),
  )
  const { concurrency, hasZoneTtl = false } = options.provider
  const withZoneLock = limitZones(options.zoneLocks, concurrency)
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
  const orphanRepository = createOrphanRepository(options.sql, { timeoutMs: options.statementTimeoutMs })
  const zoneWrites = createZoneWritesRepository(options.sql, { timeoutMs: options.statementTimeoutMs })
  const context = {
    resumeRepository: createResumeRepository(options.sql, { timeoutMs: options.statementTimeoutMs }),
    ...{ repository, orphanRepository, zoneWrites, provider, providerKind, writesZones, hasZoneTtl, pools },
    ...{ recordTemplate, markerTtl: recordTemplate.ttl, withZoneLock, driftIntervalMs, random, observer },
  }
  const nameRecords: NameRecordsContext = { repository, provider, withZoneLock, recordTemplate, hasZoneTtl, pools }
  const drift = new DriftDetector(context)
  const markers = new MarkerChecker({ ...context, now, onError: (zone, error) => reportError(zone, error) })
  const queues = new Map<string, ZoneSyncQueue>()
  let isStopping = false

  const reportError = (zone: string, error: unknown) => observer.onError('zone sync failed', error, { zone })

  const toQueue = (zone: string): ZoneSyncQueue => {
    const queue =
      queues.get(zone) ??
      new ZoneSyncQueue({
        sync: () => runInSpan(tracer, 'dns sync', { attributes: { 'pdm.zone': zone } }, () => syncZone(context, zone)),
        onEnded: outcome => observer.onSync(zone, outcome),
        onError: error => reportError(zone, error),
      })
    queues.set(zone, queue)
    return queue
  }

  const requestSync = (zone: string): Promise<SyncResult> =>
    isStopping || !writesZones ? Promise.resolve(NOTHING_SYNCED) : toQueue(zone).request()

  /** Syncs the zone until nothing is due, for `commitWaitMs` at most; the rest continues in the background. */
  const syncUntilDone = async (zone: string): Promise<void> => {
    const deadline = performance.now() + commitWaitMs
    while (performance.now() < deadline) {
      const result = await valueOrNull(requestSync(zone), deadline - performance.now())
      if (!result?.hasMore) return
    }
  }

  const waitUntilApplied: WaitUntilApplied = async ({ zone, subdomain, version, isWithdrawal = false }) => {
    const deadline = performance.now() + commitWaitMs
    for (;;) {
      const result = await valueOrNull(requestSync(zone), deadline - performance.now())
      if ((result?.applied.get(subdomain) ?? 0) >= version) return { status: 'published' }
      try {
        // Another replica may have applied it: the table knows.
        const status = await repository.findStatus(zone, subdomain)
        const isOver = isStopping || !writesZones || performance.now() >= deadline
        if (isOver || isDecided(status, version)) {
          return isWithdrawal ? toWithdrawalState(status, version) : toDnsState(status)
        }
        if (result === NOTHING_SYNCED) await sleep(NOTHING_SYNCED_PAUSE_MS)
      } catch (error) {
        // The caller's change is committed. That its status is unknown must not fail the response.
        reportError(zone, error)
        return { status: 'pending' }
      }
    }
  }

  return {
    waitUntilApplied,

    /** What `repair` would change. */
    async preview(poolDomain: string): Promise<ConvergeOutcome> {
      return validatePool(poolDomain, pools()) ?? drift.preview(poolDomain)
    },

    /** Checks the zone for drift now, and waits a bounded time until drifted and failed names are applied. */
    async repair(poolDomain: string): Promise<ConvergeOutcome> {
      const rejection = validatePool(poolDomain, pools())
      if (rejection) return rejection
      const result = await drift.check(poolDomain, { retryFailed: true })
      if (result.kind !== 'compared') return result
      await syncUntilDone(poolDomain)
      return { ...result, kind: 'repaired', ...(await repository.countPending(poolDomain)) }
    },

    /**
     * Brings the records of the active names to the current template, and waits a bounded time until they are applied.
     * Without a `caller`, only lists the changes.
     */
    async republish(poolDomain: string, caller: Caller | null): Promise<RepublishOutcome> {
      const rejection = validatePool(poolDomain, pools())
      if (rejection) return rejection
      const result = await republishZone({ repository, withZoneLock, recordTemplate }, poolDomain, caller)
      if (result.kind === 'busy' || !caller) return result
      await syncUntilDone(poolDomain)
      return { ...result, kind: 'republished', ...(await repository.countPending(poolDomain)) }
    },

    /**
     * Adopts the orphans of the zone or has them removed, and waits a bounded time until this is applied. Without a
     * `caller`, only lists them.
     */
    async changeOrphans(poolDomain: string, change: ChangeOrphansOptions): Promise<OrphanOutcome> {
      const rejection = validatePool(poolDomain, pools())
      if (rejection) return rejection
      const result = await changeOrphans(context, poolDomain, change)
      if (result.kind !== 'orphans' || !change.caller) return result
      await syncUntilDone(poolDomain)
      return { ...result, kind: 'changed', ...(await repository.countPending(poolDomain)) }
    },

    /**
     * Starts the writes to a stopped zone again, and waits a bounded time until its names are applied. Without a `caller`,
     * only lists the differences.
     */
    async resume(poolDomain: string, resume: ResumeOptions): Promise<ResumeOutcome> {
      const rejection = validatePool(poolDomain, pools())
      if (rejection) return rejection
      if (resume.caller && !writesZones) return { kind: 'dns-writes-off' }
      const result = await resumeZone(context, poolDomain, resume)
      if (result.kind !== 'planned' || !resume.caller) return result
      await syncUntilDone(poolDomain)
      return { ...result, kind: 'resumed', ...(await repository.countPending(poolDomain)) }
    },

    /** Up to `limit` records of earlier providers, after the first `offset`. */
    async listFormerRecords(poolDomain: string, offset: number, limit: number): Promise<FormerRecordsOutcome> {
      const rejection = validatePool(poolDomain, pools())
      return rejection ?? { kind: 'listed', records: await zoneWrites.listFormerRecords(poolDomain, offset, limit) }
    },

    /** Starts a sync of every zone with due names, which any replica, a crash or an outage may have left, and due drift checks. */
    async syncDueZones(): Promise<void> {
      if (writesZones) for (const zone of await repository.listDueZones()) void requestSync(zone)
      await drift.startDueChecks()
    },

    /** Starts the checks of markers that are due; see `MarkerChecker`. Nothing waits for them. */
    startMarkerChecks: () => markers.startDueChecks(),

    /** The records of a name in the database and in the zone. */
    async compareName(poolDomain: string, subdomain: string) {
      return validatePool(poolDomain, pools()) ?? compareName(nameRecords, poolDomain, subdomain)
    },

    /** What an action would change in the zone. */
    async planAction(poolDomain: string, subdomain: string, action: RecordAction) {
      return validatePool(poolDomain, pools()) ?? planAction(nameRecords, poolDomain, subdomain, action)
    },

    listZoneLag: () => repository.listZoneLag(),
    listZoneStatuses: () => repository.listZoneStatuses(),
    isCircuitOpen: () => provider.isCircuitOpen(),

    /** Starts no more syncs and checks, and waits for those in flight. */
    async stop(): Promise<void> {
      isStopping = true
      await Promise.all([...Array.from(queues.values(), queue => queue.stop()), drift.stop(), markers.stop()])
    },
  }
}

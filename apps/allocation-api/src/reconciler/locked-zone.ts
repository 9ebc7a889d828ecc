import pLimit from 'p-limit'
import type { ApplyResult, ReadResult, Unavailable, WantedRecords } from '../dns/domain/result.ts'
import type { RecordChange } from '../dns/domain/rrset.ts'
import type { RecordTemplate } from '../dns/domain/target.ts'
import type { Pools } from '../naming/naming.ts'
import type { ReconcilerObserver } from '../observability/domain/observer.ts'
import type { DesiredName } from './domain/name.ts'
import {
  MAX_BATCH_SIZE,
  type NameOutcome,
  type PlannedName,
  type PlanOptions,
  type SyncResult,
  toAppliedNames,
  toAttemptedNames,
  toFailedNames,
} from './domain/plan.ts'
import {
  createMarkerRecord,
  findStopCause,
  isMarkerOutdated,
  isOwnProvider,
  parseMarkers,
  type StopCause,
  toMarkerName,
  type ZoneMarker,
} from './domain/zone-marker.ts'
import type { OperationsRepository } from './operations-repository.ts'
import type { ProviderClient } from './provider-client.ts'
import type { ReconcilerRepository } from './repository.ts'
import type { Lease, LockOptions, WithLock, ZoneLock } from './zone-lock.ts'
import { type ScanPage, scanZone } from './zone-scan.ts'

/** What a process needs to know for its work on zones. */
export interface ReconcilerSettings {
  /** Stored with each zone that the process writes. A zone of another kind is not written. */
  readonly providerKind: string
  /** False: reads and plans only. */
  readonly writesZones: boolean
  /** Whether a name whose records were in a zone before the service waits for an operator. */
  readonly keepsUnknown: boolean
  readonly pools: () => Pools
  readonly recordTemplate: RecordTemplate
  /** Milliseconds from one drift check of a zone to the next. */
  readonly driftIntervalMs: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
  /** From 0 to 1. */
  readonly random: () => number
  readonly observer: ReconcilerObserver
}

/** What all work on zones uses. A process has one. */
export interface ReconcilerTools extends ReconcilerSettings {
  readonly repository: ReconcilerRepository
  readonly operations: OperationsRepository
  readonly provider: ProviderClient
  /** The provider has one TTL for all records of a zone. */
  readonly hasZoneTtl: boolean
}

/** Another replica held the zone lock for longer than this one waits. */
export interface Busy {
  readonly kind: 'busy'
}

/** Runs `work` while no other process writes to the zone; null if another replica held its lock for too long. */
export type WithZone = <Result, First = null>(
  name: string,
  work: (zone: LockedZone, first: First) => Promise<Result>,
  options?: LockOptions<First>,
) => Promise<Result | null>

/** `apply` changes the database, and the zone if necessary. */
export type Mode = 'dry-run' | 'apply'

export interface MarkerCheck {
  /** Why the zone must not be written; null: it can be. */
  readonly stopCause: StopCause | null
  /** Milliseconds since it was stopped; null: it was not. */
  readonly stoppedMsAgo: number | null
  /** The marker is missing or older than the last write. */
  readonly isOutdated: boolean
}

export interface Applied {
  readonly result: ApplyResult
  /** The names that were not written because their rows were locked. */
  readonly locked: ReadonlySet<string>
  /** Not null: the zone was stopped since the sync began, so nothing was written. */
  readonly stoppedCause: StopCause | null
  /** The number of the write in the marker; null: nothing was written, or the marker was not. */
  readonly serial: number | null
}

const NOTHING_TO_APPLY: ApplyResult = { kind: 'applied', rejected: [] }

/** A zone while this process holds its lock: no other replica writes to it. */
export class LockedZone {
  readonly name: string
  readonly tools: ReconcilerTools
  readonly #lock: ZoneLock
  /** The number of the last write that the provider confirmed under this lock; null: none. */
  #confirmed: number | null = null

  constructor(name: string, tools: ReconcilerTools, lock: ZoneLock) {
    this.name = name
    this.tools = tools
    this.#lock = lock
  }

  /** For the statements that write. */
  get lease(): Lease {
    return this.#lock.lease
  }

  /** A provider that replaces whole zones plans the next write on the result. */
  read(wanted: WantedRecords): Promise<ReadResult> {
    return this.tools.provider.read(this.name, wanted)
  }

  async readMarkers(): Promise<{ readonly kind: 'read'; readonly markers: readonly ZoneMarker[] } | Unavailable> {
    const read = await this.read({ names: [toMarkerName(this.name)], branches: [] })
    return read.kind === 'unavailable' ? read : { kind: 'read', markers: parseMarkers(this.name, read.records) }
  }

  /** Compares all records of the zone with the rows of its names; see `scanZone`. */
  scan(): AsyncGenerator<ScanPage | Unavailable, void> {
    const { name, tools } = this
    const { provider, repository, recordTemplate } = tools
    return scanZone({
      zone: name,
      recordTemplate,
      readZone: onPart => provider.readZone(name, onPart),
      listNames: (after, limit) => repository.listNames(name, after, limit),
      findNames: subdomains => repository.findNames(name, subdomains),
    })
  }

  /** For the plans of `names`. */
  planOptions(names: readonly DesiredName[]): Promise<PlanOptions> {
    return toPlanOptions(this.tools, this.name, names)
  }

  /** Null if the provider of this process is that of the zone. */
  async findOtherProvider(): Promise<Unavailable | null> {
    const { name, tools } = this
    const writes = await tools.repository.findWrites(name)
    if (isOwnProvider(writes, tools.providerKind)) return null
    const reason = `The zone ${name} is published with ${writes.providerKind}, and this replica is configured with ${tools.providerKind}.`
    return { kind: 'unavailable', scope: 'zone', reason }
  }

  /**
   * Compares the markers of a read that has ended with the database: read after the markers, its number is never lower, even
   * if the lock was lost in between. `apply` stops the zone if it must not be written, for all replicas.
   */
  async checkMarkers(markers: readonly ZoneMarker[], mode: Mode): Promise<MarkerCheck> {
    const { repository, observer } = this.tools
    const known = await repository.findWrites(this.name)
    const stopCause = findStopCause(markers, known)
    if (stopCause && mode === 'apply') {
      if (await repository.stopWrites(this.name, stopCause, this.lease)) observer.onZoneStopped(this.name, stopCause)
    }
    return { stopCause, stoppedMsAgo: known.stoppedMsAgo, isOutdated: isMarkerOutdated(markers, known) }
  }

  /** Writes the marker alone. It reads it first: a provider that replaces whole zones plans the write on that read. */
  async writeMarker(): Promise<ApplyResult> {
    const { repository, providerKind } = this.tools
    const read = await this.readMarkers()
    if (read.kind === 'unavailable') return read
    const { installation } = await repository.findWrites(this.name)
    const serial = await this.#lock.renewWith(lease => repository.raiseSerial(this.name, providerKind, lease))
    return this.#write({ installation, serial }, [])
  }

  /** Writes the changes of the plans. Before the write, it records the attempt and raises the number of the zone. */
  async apply(planned: readonly PlannedName[], installation: string): Promise<Applied> {
    const { repository, providerKind } = this.tools
    if (!planned.some(({ plan }) => plan.kind === 'changes' && plan.changes.length > 0)) {
      return { result: NOTHING_TO_APPLY, locked: new Set(), stoppedCause: null, serial: null }
    }
    const attempted = planned.flatMap(toAttemptedNames)
    const attempt = await this.#lock.renewWith(lease =>
      repository.markAttempted(this.name, attempted, providerKind, lease),
    )
    const { stoppedCause, serial } = attempt
    const writable = new Set(attempt.subdomains)
    const locked = new Set(attempted.map(name => name.subdomain).filter(subdomain => !writable.has(subdomain)))
    const changes = planned.flatMap(({ name, plan }) =>
      plan.kind === 'changes' && !locked.has(name.subdomain) ? plan.changes : [],
    )
    if (stoppedCause || changes.length === 0) return { result: NOTHING_TO_APPLY, locked, stoppedCause, serial: null }
    const result = await this.#write({ installation, serial }, changes)
    const marker = toMarkerName(this.name)
    const isApplied = result.kind === 'applied' && !result.rejected.some(({ name }) => name === marker)
    if (isApplied && !result.skipped?.includes(marker)) this.#confirmed = serial
    return { result, locked, stoppedCause, serial: this.#confirmed }
  }

  /**
   * Saves what a sync achieved, and releases the lock. A process that lost the lock saves nothing: it does not know what
   * another one has written since.
   */
  async save(outcomes: readonly NameOutcome[]): Promise<SyncResult> {
    const { repository, driftIntervalMs, random } = this.tools
    const applied = outcomes.flatMap(toAppliedNames)
    const failed = outcomes.flatMap(outcome => toFailedNames(outcome, random))
    const isComplete = applied.length === outcomes.length
    const firstDriftCheckMs = driftIntervalMs * (0.5 + 0.5 * random())
    const achieved = { applied, failed, isComplete, serial: this.#confirmed, firstDriftCheckMs }
    await this.#lock.finish(lease => repository.saveOutcomes(this.name, achieved, lease))
    return {
      applied: new Map(
        applied.filter(({ leftover }) => leftover === null).map(({ subdomain, version }) => [subdomain, version]),
      ),
      failed: new Map(failed.map(name => [name.subdomain, name])),
      hasMore:
        (outcomes.length === MAX_BATCH_SIZE && applied.length > 0) ||
        outcomes.some(({ outcome }) => outcome.kind === 'skipped'),
    }
  }

  /** Writes the marker before everything else. */
  async #write(marker: ZoneMarker, changes: readonly RecordChange[]): Promise<ApplyResult> {
    const { provider, recordTemplate, observer } = this.tools
    const set = createMarkerRecord(this.name, marker, recordTemplate.ttl)
    const result = await provider.apply(this.name, [{ kind: 'upsert', set }, ...changes], this.#lock)
    // The names are published nevertheless: without the marker, only the protection of a later restore is missing.
    const rejection = result.kind === 'applied' && result.rejected.find(({ name }) => name === set.name)
    if (rejection) observer.onMarkerRejected(this.name, rejection.reason)
    return result
  }
}

/** For the plans of `names`, those of one sync or drift check. */
export const toPlanOptions = async (
  { repository, hasZoneTtl, pools }: ReconcilerTools,
  zone: string,
  names: readonly DesiredName[],
): Promise<PlanOptions> => {
  // A zone that another replica manages, or that is no longer configured, keeps its records as well.
  const zones = names.some(name => name.isPurged) ? [...pools().known, ...(await repository.listZones())] : []
  return { zone, hasZoneTtl, zones }
}

/** Each has one provider call. */
const MAX_CONCURRENT_ZONES = 16

/** The lock of a provider that accepts one call at a time for the whole account. No zone has this name. */
const ACCOUNT_LOCK = '(account)'

/** Limits how many zones this process works on. `concurrency` is the provider's: 1 makes all zones share one lock. */
export const createZoneLocker = (tools: ReconcilerTools, withLock: WithLock, concurrency: 1 | undefined): WithZone => {
  const limit = pLimit(concurrency ?? MAX_CONCURRENT_ZONES)
  return (name, work, options) =>
    limit(() =>
      withLock(
        concurrency === 1 ? ACCOUNT_LOCK : name,
        (lock, first) => work(new LockedZone(name, tools, lock), first),
        options,
      ),
    )
}

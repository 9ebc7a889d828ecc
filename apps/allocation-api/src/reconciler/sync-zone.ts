import type { ApplyResult } from '../dns/domain/result.ts'
import { changeKey, type RecordSet } from '../dns/domain/rrset.ts'
import type { Pools } from '../naming/naming.ts'
import { type MarkerContext, reportMarkerRejection, stopZone } from './check-markers.ts'
import { type Failure, type Outcome, toFailure, toOutcome, toRetryDelayMs, toStopFailure } from './domain/outcome.ts'
import { indexRecords, limitPlans, type Plan, type PlanOptions, planName, toWantedRecords } from './domain/plan.ts'
import {
  createMarkerRecord,
  findStopCause,
  isOwnProvider,
  parseMarkers,
  toMarkerName,
  type ZoneWrites,
} from './domain/zone-marker.ts'
import type { ProviderClient } from './provider-client.ts'
import type { AppliedName, DeletedRecord, Due, DueName, FailedName, ReconcilerRepository } from './repository.ts'
import { holdDuring, type WithZoneLock, type ZoneLock, ZoneLockLostError } from './zone-lock.ts'

export interface SyncContext extends Pick<MarkerContext, 'zoneWrites' | 'providerKind' | 'markerTtl' | 'observer'> {
  readonly repository: Pick<
    ReconcilerRepository,
    'findDue' | 'listDue' | 'listZones' | 'markAttempted' | 'saveOutcomes'
  >
  readonly provider: Pick<ProviderClient, 'read' | 'apply'>
  readonly withZoneLock: WithZoneLock
  readonly hasZoneTtl: boolean
  readonly pools: () => Pools
  /** Milliseconds from one drift check of a zone to the next. */
  readonly driftIntervalMs: number
  /** From 0 to 1. */
  readonly random: () => number
}

/** The result of a sync for the callers that wait for it. Why a name was not applied is in the table. */
export interface SyncResult {
  /** The applied version by subdomain. */
  readonly applied: ReadonlyMap<string, number>
  /** The batch was full, or the provider skipped some names: more names may be due. */
  readonly hasMore: boolean
  /** At least one name could not be published or withdrawn. */
  readonly hasFailed: boolean
}

export const NOTHING_SYNCED: SyncResult = { applied: new Map(), hasMore: false, hasFailed: false }

/** After this time it is verified again that the lock is held. */
const MAX_LOCK_STATUS_AGE_MS = 100

/** What one provider call can carry, and a bound on memory. */
const MAX_BATCH_SIZE = 1_000

interface Applied {
  readonly result: ApplyResult
  /** The names that were not written because their rows were locked. */
  readonly locked: ReadonlySet<string>
  /** Not null: the zone was stopped since the sync began, so nothing was written. */
  readonly stoppedCause: ZoneWrites['stoppedCause']
}

const NOTHING_TO_APPLY: ApplyResult = { kind: 'applied', rejected: [] }

interface PlannedName {
  readonly name: DueName
  readonly plan: Plan
}

interface NameOutcome {
  readonly name: DueName
  readonly outcome: Outcome
}

/**
 * One sync of a zone, under its lock: read the zone, subtract it from the desired records, apply the difference, save
 * the outcomes. It is the same after a commit, a crash or an outage, and repeating it changes nothing. Null: another replica
 * had the lock for too long.
 */
export const syncZone = (context: SyncContext, zone: string): Promise<SyncResult | null> => {
  const { repository, withZoneLock } = context
  return withZoneLock(
    zone,
    (lock, due: Due) => syncDueNames(context, zone, lock, due),
    sql => repository.findDue(zone, MAX_BATCH_SIZE, sql),
  )
}

const syncDueNames = async (context: SyncContext, zone: string, lock: ZoneLock, due: Due): Promise<SyncResult> => {
  const { repository, provider, zoneWrites, providerKind } = context
  const { writes } = due
  const toFqdn = ({ subdomain }: DueName) => `${subdomain}.${zone}`
  let { names } = due
  const failAll = (failure: Failure) => {
    const outcomes = names.map(name => ({ name, outcome: failure }))
    return saveOutcomes(context, zone, lock, outcomes)
  }
  // A replica with the provider of the zone publishes the names.
  if (names.length === 0 || !isOwnProvider(writes, providerKind)) return NOTHING_SYNCED
  if (writes.stoppedCause) return failAll(toStopFailure(zone, writes.stoppedCause))
  const wanted = toWantedRecords(zone, names)
  const withMarker = { ...wanted, names: [...wanted.names, toMarkerName(zone)] }
  const read = await holdDuring(lock, () => provider.read(zone, withMarker))
  if (read.kind === 'unavailable') return failAll(toFailure(read))
  // Changes made during a long read need not wait for the next sync: the lock excludes other writers since the read.
  if (read.isFullZone) names = await repository.listDue(zone, MAX_BATCH_SIZE)
  const markers = parseMarkers(zone, read.records)
  // Read after the marker, the number is never lower, even if the lock was lost in between.
  const cause = findStopCause(markers, writes) && findStopCause(markers, await zoneWrites.find(zone))
  if (cause) {
    await stopZone(context, zone, cause)
    return failAll(toStopFailure(zone, cause))
  }
  const options = await toPlanOptions(context, zone, names)
  const current = indexRecords(zone, read)
  const plans = limitPlans(names.map(name => planName(current, name, options)))
  const planned = names.flatMap((name, i): PlannedName[] => {
    const plan = plans[i]
    return plan ? [{ name, plan }] : []
  })
  const { result, locked, stoppedCause } = await applyPlans(context, zone, lock, planned, writes)
  if (stoppedCause) return failAll(toStopFailure(zone, stoppedCause))
  const outcomes = planned.map(
    ({ name, plan }): NameOutcome => ({
      name,
      outcome: locked.has(name.subdomain) ? { kind: 'locked' } : toOutcome(toFqdn(name), plan, result),
    }),
  )
  const confirmed = await holdDuring(lock, () => confirmPurges(context, zone, outcomes, options))
  return saveOutcomes(context, zone, lock, confirmed)
}

/** `names` are those of one sync or drift check. */
export const toPlanOptions = async (
  {
    repository,
    hasZoneTtl,
    pools,
  }: Pick<SyncContext, 'hasZoneTtl' | 'pools'> & {
    readonly repository: Pick<ReconcilerRepository, 'listZones'>
  },
  zone: string,
  names: readonly Pick<DueName, 'isPurged'>[],
): Promise<PlanOptions> => {
  // A zone that another replica manages, or that is no longer configured, keeps its records as well.
  const zones = names.some(name => name.isPurged) ? [...pools().known, ...(await repository.listZones())] : []
  return { zone, hasZoneTtl, zones }
}

/**
 * Reads the names again that have a new holder: only when a read that began after the write shows nothing of an earlier
 * holder is the purge over. Later, a record of another writer may be the new holder's. A name without a holder needs no
 * such read, because the drift checks that follow purge it again.
 */
const confirmPurges = async (
  { provider }: SyncContext,
  zone: string,
  outcomes: readonly NameOutcome[],
  options: PlanOptions,
): Promise<NameOutcome[]> => {
  const needsRead = ({ name, outcome }: NameOutcome) =>
    outcome.kind === 'applied' && name.isPurged && name.desired.length > 0
  const purged = outcomes.filter(needsRead).map(({ name }) => `${name.subdomain}.${zone}`)
  if (purged.length === 0) return [...outcomes]
  const read = await provider.read(zone, { names: [], branches: purged })
  const current = indexRecords(zone, read.kind === 'read' ? read : { records: [] })
  const confirm = ({ name, outcome }: NameOutcome): Outcome => {
    if (read.kind === 'unavailable') return toFailure(read)
    const plan = planName(current, name, options)
    if (plan.kind === 'conflict' || plan.deletedRecords.length > 0) return { kind: 'skipped' }
    const hasOwnLeftover = plan.changes.some(change => change.kind === 'delete' && current.byKey.has(changeKey(change)))
    return hasOwnLeftover ? { kind: 'skipped' } : outcome
  }
  return outcomes.map(nameOutcome =>
    needsRead(nameOutcome) ? { name: nameOutcome.name, outcome: confirm(nameOutcome) } : nameOutcome,
  )
}

const toDeletedRecord = ({ name, type, ttl, values }: RecordSet): DeletedRecord => ({
  name,
  type,
  ttl,
  data: [...values],
})

const applyPlans = async (
  { repository, provider, providerKind, markerTtl, observer }: SyncContext,
  zone: string,
  lock: ZoneLock,
  planned: readonly PlannedName[],
  { installation }: ZoneWrites,
): Promise<Applied> => {
  if (!planned.some(({ plan }) => plan.kind === 'changes' && plan.changes.length > 0)) {
    return { result: NOTHING_TO_APPLY, locked: new Set(), stoppedCause: null }
  }
  const attempted = planned.flatMap(({ name: { subdomain, version }, plan }) =>
    plan.kind === 'changes' ? [{ subdomain, version, deletedRecords: plan.deletedRecords.map(toDeletedRecord) }] : [],
  )
  const startedAt = performance.now()
  const attempt = await repository.markAttempted(zone, attempted, providerKind, lock.transaction)
  const { isHeld, stoppedCause, serial, subdomains } = attempt
  if (!isHeld) throw new ZoneLockLostError(zone)
  // The attempt knows the lock as it was before its commit, which may have waited for a disk or a standby.
  if (performance.now() - startedAt > MAX_LOCK_STATUS_AGE_MS) await lock.assertHeld()
  const locked = new Set(attempted.map(name => name.subdomain).filter(subdomain => !subdomains.has(subdomain)))
  const changes = planned.flatMap(({ name, plan }) =>
    plan.kind === 'changes' && !locked.has(name.subdomain) ? plan.changes : [],
  )
  if (stoppedCause || changes.length === 0) return { result: NOTHING_TO_APPLY, locked, stoppedCause }
  const marker = createMarkerRecord(zone, { installation, serial }, markerTtl)
  const result = await holdDuring(lock, () => provider.apply(zone, [{ kind: 'upsert', set: marker }, ...changes]))
  reportMarkerRejection(observer, zone, result)
  return { result, locked, stoppedCause }
}

const toAppliedName = ({ name, outcome }: NameOutcome): AppliedName[] => {
  if (outcome.kind !== 'applied') return []
  const { subdomain, version, desired, isDriftRepair } = name
  const event = isDriftRepair ? 'repaired' : desired.length === 0 ? 'withdrawn' : 'published'
  const detail = `${outcome.changes.length} record sets differed from the records that this service had written.`
  return [{ subdomain, version, desired, event, detail: isDriftRepair ? detail : null }]
}

const toFailedName = (name: DueName, failure: Failure, random: number): FailedName => ({
  subdomain: name.subdomain,
  version: name.version,
  desired: name.desired,
  failure: failure.cause,
  reason: failure.reason,
  retryDelayMs: toRetryDelayMs(name, failure, random),
})

/** A replica that lost the lock saves nothing: it does not know what another one has written since. */
const saveOutcomes = async (
  { repository, driftIntervalMs, random }: SyncContext,
  zone: string,
  lock: ZoneLock,
  outcomes: readonly NameOutcome[],
): Promise<SyncResult> => {
  const applied = outcomes.flatMap(toAppliedName)
  const failed = outcomes.flatMap(({ name, outcome }) =>
    outcome.kind === 'failed' ? [toFailedName(name, outcome, random())] : [],
  )
  const isComplete = applied.length === outcomes.length
  const firstDriftCheckMs = driftIntervalMs * (0.5 + 0.5 * random())
  await lock.finish(lane => repository.saveOutcomes(zone, { applied, failed, isComplete, firstDriftCheckMs }, lane))
  const skipped = outcomes.filter(({ outcome }) => outcome.kind === 'skipped')
  return {
    applied: new Map(applied.map(({ subdomain, version }) => [subdomain, version])),
    hasMore: outcomes.length === MAX_BATCH_SIZE || skipped.length > 0,
    hasFailed: failed.length > 0,
  }
}

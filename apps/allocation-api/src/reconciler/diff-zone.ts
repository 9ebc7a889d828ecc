import type { Unavailable } from '../dns/domain/result.ts'
import type { RecordChange } from '../dns/domain/rrset.ts'
import type { Pools } from '../naming/naming.ts'
import { checkMarkers, findOtherProvider, type MarkerCheck, type MarkerContext, writeMarker } from './check-markers.ts'
import type { Orphan } from './domain/orphan.ts'
import { indexRecords, type PlanOptions, planName } from './domain/plan.ts'
import type { StopCause } from './domain/zone-marker.ts'
import { findOrphans } from './orphans.ts'
import type { ProviderClient } from './provider-client.ts'
import type { CheckedName, ReconcilerRepository } from './repository.ts'
import { toPlanOptions } from './sync-zone.ts'
import { holdDuring, type ZoneLock } from './zone-lock.ts'
import { type ScanContext, type ScannedName, type ScanPage, scanZone } from './zone-scan.ts'

export interface PlannedChange {
  readonly subdomain: string
  readonly change: RecordChange
}

export interface PlannedConflict {
  readonly subdomain: string
  readonly reason: string
}

/** The difference between the desired and the current records of a zone, whether or not the names are due. */
export interface ZoneDiff {
  readonly kind: 'compared'
  /** The first `MAX_LISTED`, by name. */
  readonly changes: readonly PlannedChange[]
  readonly changeCount: number
  /** The first `MAX_LISTED`, by name. */
  readonly conflicts: readonly PlannedConflict[]
  readonly conflictCount: number
  /** Names that were applied and now differ: they are due again. */
  readonly driftedCount: number
  /** Records without a row; the first `MAX_LISTED`, by name. */
  readonly orphans: readonly Orphan[]
  readonly orphanCount: number
  /** Why nothing is written to the zone; null: it is written. */
  readonly stopCause: StopCause | null
}

export interface DiffContext extends ScanContext, Omit<MarkerContext, 'provider'> {
  readonly provider: ScanContext['provider'] & Pick<ProviderClient, 'read' | 'apply'>
  readonly repository: ScanContext['repository'] & Pick<ReconcilerRepository, 'listZones' | 'markDrifted' | 'prune'>
  readonly hasZoneTtl: boolean
  readonly pools: () => Pools
}

/** `apply` makes drifted names due, and prunes previous records that the zone no longer has. `dry-run` changes nothing. */
export type DiffMode = 'dry-run' | 'apply'

/** Changes and conflicts that the result lists; the rest is only counted. */
export const MAX_LISTED = 1_000

/**
 * A timed-out write may take effect as late as this after a newer one was applied, and a read may be as stale as this.
 * Records that a later read no longer shows do not come back.
 */
const MAX_WRITE_DELAY_MS = 60_000

/** Whether the previous records of a name in its desired state can be deleted: no earlier write can still take effect. */
const canPrune = ({ isApplied, desired, previous, appliedMsAgo }: CheckedName, readMsAgo: number): boolean =>
  isApplied && (desired.length === 0 || previous.length > 0) && (appliedMsAgo ?? 0) - readMsAgo > MAX_WRITE_DELAY_MS

/** Collects the differences of one zone, name by name. */
class DiffCollector {
  readonly changes: PlannedChange[] = []
  readonly conflicts: PlannedConflict[] = []
  changeCount = 0
  conflictCount = 0
  driftedCount = 0
  readonly orphans: Orphan[] = []
  orphanCount = 0
  stopCause: StopCause | null = null

  addOrphans(orphans: readonly Orphan[]): void {
    this.orphanCount += orphans.length
    this.orphans.push(...orphans.slice(0, MAX_LISTED - this.orphans.length))
  }

  toDiff(): ZoneDiff {
    const { changes, changeCount, conflicts, conflictCount, driftedCount, orphans, orphanCount, stopCause } = this
    return {
      ...{ kind: 'compared', changes, changeCount, conflicts, conflictCount, driftedCount },
      ...{ orphans, orphanCount, stopCause },
    }
  }

  /** Whether the records of the name differ from its desired ones. */
  add({ name, isAsDesired, ...current }: ScannedName, options: PlanOptions): boolean {
    if (isAsDesired && !name.hasInFlightWrite) return false
    const { subdomain } = name
    const plan = planName(indexRecords(options.zone, current), name, options)
    if (plan.kind === 'conflict') {
      this.conflictCount += 1
      if (this.conflicts.length < MAX_LISTED) this.conflicts.push({ subdomain, reason: plan.reason })
      return true
    }
    this.changeCount += plan.changes.length
    const listed = plan.changes.slice(0, MAX_LISTED - this.changes.length)
    this.changes.push(...listed.map(change => ({ subdomain, change })))
    return plan.changes.length > 0
  }
}

/**
 * Compares a zone, under its lock, with all its desired records. Drift comes from edits by other writers, from timed-out
 * writes that took effect late, or from a provider restored from a backup. A drifted name becomes due, and the next sync
 * treats it as after a commit.
 */
export const diffZone = async (
  context: DiffContext,
  zone: string,
  lock: ZoneLock,
  mode: DiffMode,
): Promise<ZoneDiff | Unavailable> => {
  const { repository } = context
  const otherProvider = await findOtherProvider(context, zone)
  if (otherProvider) return otherProvider
  const collector = new DiffCollector()
  let marker: MarkerCheck | undefined
  // A zone without names is compared on request only: the provider may no longer have it.
  if (mode === 'apply' && (await repository.listNames(zone, '', 1)).length === 0) return collector.toDiff()
  const addPage = async ({ names, orphans, markers, readMsAgo }: ScanPage): Promise<void> => {
    marker ??= await checkMarkers(context, zone, markers, mode)
    collector.stopCause = marker.stopCause
    collector.addOrphans(await findOrphans(context, zone, orphans))
    const options = await toPlanOptions(
      context,
      zone,
      names.map(({ name }) => name),
    )
    const { same = [], different = [] } = Object.groupBy(names, scanned =>
      collector.add(scanned, options) ? 'different' : 'same',
    )
    if (mode === 'dry-run') return
    await lock.assertHeld()
    const drifted = different.map(({ name }) => name).filter(({ isApplied }) => isApplied)
    const prunable = same.map(({ name }) => name).filter(name => canPrune(name, readMsAgo))
    if (drifted.length > 0) await repository.markDrifted(zone, drifted)
    if (prunable.length > 0) await repository.prune(zone, prunable)
    collector.driftedCount += drifted.length
  }
  return holdDuring(lock, async () => {
    for await (const page of scanZone(context, zone)) {
      if (page.kind === 'unavailable') return page
      await addPage(page)
    }
    // A sync of drifted names writes the marker with them.
    const needsMarker = marker?.isOutdated && marker.stopCause === null && collector.driftedCount === 0
    if (needsMarker && mode === 'apply' && context.writesZones) await writeMarker(context, zone, lock)
    return collector.toDiff()
  })
}

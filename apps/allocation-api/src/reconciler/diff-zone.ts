import type { Hiding, Unavailable } from '../dns/domain/result.ts'
import type { RecordChange } from '../dns/domain/rrset.ts'
import { Listing } from './domain/listing.ts'
import type { CheckedName } from './domain/name.ts'
import type { Orphan } from './domain/orphan.ts'
import { indexRecords, type Plan, type PlanOptions, planName, toConflict } from './domain/plan.ts'
import type { ScannedName } from './domain/scan-entry.ts'
import type { StopCause } from './domain/zone-marker.ts'
import type { LockedZone, MarkerCheck, Mode } from './locked-zone.ts'
import { findOrphans, type OrphanList } from './orphans.ts'

export interface PlannedChange {
  readonly subdomain: string
  readonly change: RecordChange
}

export const isDeletion = ({ change }: PlannedChange): boolean => change.kind === 'delete'

export interface PlannedConflict {
  readonly subdomain: string
  readonly reason: string
}

/** The difference between the desired and the current records of a zone, whether or not the names are due. */
export interface ZoneDifferences extends OrphanList {
  /** The first `MAX_LISTED`, by name. */
  readonly changes: readonly PlannedChange[]
  readonly changeCount: number
  /** The first `MAX_LISTED`, by name. */
  readonly conflicts: readonly PlannedConflict[]
  readonly conflictCount: number
  /** Names that were applied and now differ: they are due again. */
  readonly driftedCount: number
  /** Why nothing is written to the zone; null: it is written. */
  readonly stopCause: StopCause | null
}

export interface ZoneDiff extends ZoneDifferences {
  readonly kind: 'compared'
}

/**
 * A timed-out write may take effect as late as this after a newer one was applied, and a read may be as stale as this.
 * Records that a later read no longer shows do not come back.
 */
const MAX_WRITE_DELAY_MS = 60_000

/** Whether the previous records of a name in its desired state can be deleted: no earlier write can still take effect. */
const canPrune = ({ isApplied, desired, previous, appliedMsAgo }: CheckedName, readMsAgo: number): boolean =>
  isApplied && (desired.length === 0 || previous.length > 0) && (appliedMsAgo ?? 0) - readMsAgo > MAX_WRITE_DELAY_MS

/** The plan of a name whose records can differ from its desired ones. */
const planScanned = ({ name, ...current }: ScannedName, hiding: Hiding, options: PlanOptions): Plan | null =>
  current.isAsDesired && !name.hasInFlightWrite && hiding.size === 0
    ? null
    : planName(indexRecords(options.zone, { ...current, hiding }), name, options)

/**
 * Compares a zone with all its desired records. Drift comes from edits by other writers, from timed-out writes that took
 * effect late, or from a provider restored from a backup. A drifted name becomes due, and the next sync treats it as after a
 * commit. `apply` also prunes previous records that the zone no longer has.
 */
export const diffZone = async (zone: LockedZone, mode: Mode): Promise<ZoneDiff | Unavailable> => {
  const { repository, writesZones } = zone.tools
  const otherProvider = await zone.findOtherProvider()
  if (otherProvider) return otherProvider
  const changes = new Listing<PlannedChange>(isDeletion)
  const conflicts = new Listing<PlannedConflict>()
  const orphans = new Listing<Orphan>()
  let driftedCount = 0
  let marker: MarkerCheck | undefined
  const toDiff = (): ZoneDiff => ({
    kind: 'compared',
    changes: changes.items,
    changeCount: changes.count,
    conflicts: conflicts.items,
    conflictCount: conflicts.count,
    driftedCount,
    orphans: orphans.items,
    orphanCount: orphans.count,
    stopCause: marker?.stopCause ?? null,
  })
  /** Whether the name has other records than the desired ones, or something hides them. */
  const list = (scanned: ScannedName, hiding: Hiding, options: PlanOptions): boolean => {
    const plan = planScanned(scanned, hiding, options)
    const { subdomain } = scanned.name
    if (!plan) return false
    const planned = plan.kind === 'changes' ? plan.changes : []
    const reason = toConflict(plan)
    changes.add(planned.map(change => ({ subdomain, change })))
    if (reason !== null) conflicts.add([{ subdomain, reason }])
    return reason !== null || planned.length > 0
  }
  // A zone without names is compared on request only: the provider may no longer have it.
  if (mode === 'apply' && (await repository.listNames(zone.name, '', 1)).length === 0) return toDiff()
  for await (const page of zone.scan()) {
    if (page.kind === 'unavailable') return page
    marker ??= await zone.checkMarkers(page.markers, mode)
    orphans.add(await findOrphans(zone, page.orphans))
    const options = await zone.planOptions(page.names.map(({ name }) => name))
    const { same = [], different = [] } = Object.groupBy(page.names, scanned =>
      list(scanned, page.hiding, options) ? 'different' : 'same',
    )
    if (mode === 'dry-run') continue
    const drifted = different.map(({ name }) => name).filter(({ isApplied }) => isApplied)
    const prunable = same.map(({ name }) => name).filter(name => canPrune(name, page.readMsAgo))
    if (drifted.length > 0) await repository.markDrifted(zone.name, drifted, zone.lease)
    if (prunable.length > 0) await repository.prune(zone.name, prunable, zone.lease)
    driftedCount += drifted.length
  }
  // A sync of drifted names writes the marker with them.
  const needsMarker = marker?.isOutdated && marker.stopCause === null && driftedCount === 0
  if (needsMarker && mode === 'apply' && writesZones) await zone.writeMarker()
  return toDiff()
}

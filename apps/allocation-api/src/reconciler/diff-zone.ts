import type { ReadResult, Unavailable } from '../dns/domain/result.ts'
import type { RecordChange } from '../dns/domain/rrset.ts'
import type { Pools } from '../naming/naming.ts'
import { type CurrentRecords, indexRecords, type PlanOptions, planName } from './domain/plan.ts'
import type { ProviderClient } from './provider-client.ts'
import type { CheckedName, ReconcilerRepository } from './repository.ts'
import { toPlanOptions } from './sync-zone.ts'
import type { ZoneLock } from './zone-lock.ts'

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
}

export interface DiffContext {
  readonly repository: Pick<ReconcilerRepository, 'listNames' | 'listZones' | 'markDrifted' | 'prune'>
  readonly provider: Pick<ProviderClient, 'read'>
  readonly hasZoneTtl: boolean
  readonly pools: () => Pools
}

/** `apply` makes drifted names due, and prunes previous records that the zone no longer has. `dry-run` changes nothing. */
export type DiffMode = 'dry-run' | 'apply'

const EMPTY_ZONE: ReadResult = { kind: 'read', records: [] }

/** Names per page: a bound on memory and on a statement. */
const PAGE_SIZE = 1_000

/** Changes and conflicts that the result lists; the rest is only counted. */
export const MAX_LISTED = 1_000

/**
 * A timed-out write may take effect as late as this after a newer one was applied, and a read may be as stale as this.
 * Records that a later read no longer shows do not come back.
 */
const MAX_WRITE_DELAY_MS = 60_000

/** Whether the previous records of a name in its desired state can be deleted: no earlier write can still take effect. */
const canPrune = ({ isApplied, desired, previous, appliedMsAgo }: CheckedName): boolean =>
  isApplied && (desired.length === 0 || previous.length > 0) && (appliedMsAgo ?? 0) > MAX_WRITE_DELAY_MS

/** Collects the differences of one zone, name by name. */
class DiffCollector {
  readonly changes: PlannedChange[] = []
  readonly conflicts: PlannedConflict[] = []
  changeCount = 0
  conflictCount = 0

  /** Whether the current records of `name` differ from its desired ones. */
  add(current: CurrentRecords, name: CheckedName, options: PlanOptions): boolean {
    const { subdomain } = name
    const plan = planName(current, name, options)
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
  const { repository, provider } = context
  let page = await repository.listNames(zone, '', PAGE_SIZE)
  // A zone without names is not read: the provider may no longer have it.
  const read = page.length > 0 ? await provider.read(zone, 'all') : EMPTY_ZONE
  if (read.kind === 'unavailable') return read
  const current = indexRecords(zone, read)
  const collector = new DiffCollector()
  let driftedCount = 0
  while (page.length > 0) {
    const options = await toPlanOptions(context, zone, page)
    const { same = [], different = [] } = Object.groupBy(page, name =>
      collector.add(current, name, options) ? 'different' : 'same',
    )
    if (mode === 'apply') {
      await lock.assertHeld()
      const drifted = different.filter(name => name.isApplied)
      const prunable = same.filter(canPrune)
      if (drifted.length > 0) await repository.markDrifted(zone, drifted)
      if (prunable.length > 0) await repository.prune(zone, prunable)
      driftedCount += drifted.length
    }
    const last = page.length === PAGE_SIZE ? page.at(-1)?.subdomain : undefined
    page = last === undefined ? [] : await repository.listNames(zone, last, PAGE_SIZE)
  }
  const { changes, changeCount, conflicts, conflictCount } = collector
  return { kind: 'compared', changes, changeCount, conflicts, conflictCount, driftedCount }
}

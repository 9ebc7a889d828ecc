import type { RecordChange } from '../dns/domain/rrset.ts'
import type { ReadResult, Unavailable } from '../dns/provider.ts'
import { indexRecords, planName } from './domain/plan.ts'
import type { ComparedName, ComparisonStore } from './drift-repository.ts'
import type { Calls } from './provider-client.ts'
import type { ZoneLock } from './zone-lock.ts'

export interface PlannedChange {
  readonly subdomain: string
  readonly change: RecordChange
}

export interface PlannedConflict {
  readonly subdomain: string
  readonly reason: string
}

/** What a zone lacks of what is desired, whether or not it is due already. */
export interface Compared {
  readonly kind: 'compared'
  /** The first of them, by name. */
  readonly changes: readonly PlannedChange[]
  readonly changeCount: number
  /** The first of them, by name. */
  readonly conflicts: readonly PlannedConflict[]
  readonly conflictCount: number
  /** Names that had been applied and were found to differ: they are due again. */
  readonly reopened: number
}

export interface ComparisonDependencies {
  readonly zones: Pick<ComparisonStore, 'names' | 'reopen' | 'forget'>
  readonly calls: Pick<Calls, 'read'>
  readonly hasZoneTtl: boolean
}

/** What is to come of the differences: shown and nothing more, or repaired too. */
export type Intent = 'show' | 'repair'

const nothing: ReadResult = { kind: 'read', records: [] }

/** Names looked at in one step: a bound on memory and on a statement. */
const PAGE = 1_000

/** Changes and conflicts that are told one by one; the rest is only counted. */
const MOST_SHOWN = 1_000

/**
 * An order that was given up may take effect as late as this after a newer one was applied, and a read may show a state
 * as old as this. What is seen gone later than that does not come back.
 */
const SETTLED_AFTER_MS = 60_000

/**
 * Compares a zone, under its claim, with everything that is desired of it: drift, whether of other people's edits, of
 * late effects or of a provider restored to an older day. A name that differs is due again, and the next pass does with
 * it what it would do after a commit.
 */
export const createComparison = ({ zones, calls, hasZoneTtl }: ComparisonDependencies) => {
  return async (zone: string, claim: ZoneLock, intent: Intent): Promise<Compared | Unavailable> => {
    let page = await zones.names(zone, '', PAGE)
    // Of a zone in which nobody has a name nothing is asked, be it that the provider has it no more.
    const read = page.length > 0 ? await calls.read(zone, 'all') : nothing
    if (read.kind === 'unavailable') return read
    const current = indexRecords(read.records)
    const changes: PlannedChange[] = []
    const conflicts: PlannedConflict[] = []
    let [changeCount, conflictCount, reopened] = [0, 0, 0]

    const look = (name: ComparedName): 'same' | 'different' => {
      const { subdomain } = name
      const plan = planName(current, name, { zone, hasZoneTtl: hasZoneTtl })
      if (plan.kind === 'conflict') {
        conflictCount += 1
        if (conflicts.length < MOST_SHOWN) conflicts.push({ subdomain, reason: plan.reason })
        return 'different'
      }
      changeCount += plan.changes.length
      changes.push(...plan.changes.slice(0, MOST_SHOWN - changes.length).map(change => ({ subdomain, change })))
      return plan.changes.length > 0 ? 'different' : 'same'
    }

    while (page.length > 0) {
      const { same = [], different = [] } = Object.groupBy(page, look)
      if (intent === 'repair') {
        await claim.confirm()
        const drifted = different.filter(name => name.isApplied)
        const settled = same.filter(
          ({ isApplied, desired, previous, appliedMsAgo }) =>
            isApplied && (desired.length === 0 || previous.length > 0) && (appliedMsAgo ?? 0) > SETTLED_AFTER_MS,
        )
        if (drifted.length > 0) await zones.reopen(zone, drifted)
        if (settled.length > 0) await zones.forget(zone, settled)
        reopened += drifted.length
      }
      const after = page.length === PAGE ? page.at(-1)?.subdomain : undefined
      page = after === undefined ? [] : await zones.names(zone, after, PAGE)
    }
    return { kind: 'compared', changes, changeCount, conflicts, conflictCount, reopened }
  }
}

import type { Caller } from '../naming/naming.ts'
import { deriveRecords } from '../records/domain/derive.ts'
import { NO_RECORDS } from '../records/domain/stored.ts'
import { isDeletion, type PlannedChange } from './diff-zone.ts'
import { Listing } from './domain/listing.ts'
import { toRecordChanges } from './domain/record-changes.ts'
import type { Busy, ReconcilerTools, WithZone } from './locked-zone.ts'
import type { ActiveRecords } from './operations-repository.ts'
import type { Lease } from './zone-lock.ts'

/** How the desired records of the active names of a zone differ from those of the current template. */
export interface TemplateChanges {
  /** The first `MAX_LISTED`, by name. */
  readonly changes: readonly PlannedChange[]
  readonly changeCount: number
  readonly nameCount: number
}

export interface TemplateDiff extends TemplateChanges {
  readonly kind: 'planned'
}

/** Names per statement. The zone is locked for one statement at a time, so that commits and releases are not held up. */
const BATCH_SIZE = 500

/**
 * Gives every active name of the zone the desired records of the current template; without a `caller`, only lists the
 * changes. A name that changes at the same moment is left out: its own change used the template. Repeating it changes
 * nothing. `busy`: the names before the interruption have their new records, and the others do not.
 */
export const republishZone = async (
  { operations, recordTemplate }: ReconcilerTools,
  withZone: WithZone,
  zone: string,
  caller: Caller | null,
): Promise<TemplateDiff | Busy> => {
  const changes = new Listing<PlannedChange>(isDeletion)
  let nameCount = 0
  const republishBatch = async (after: string, lease: Lease | null): Promise<readonly ActiveRecords[]> => {
    const names = await operations.listActive(zone, after, BATCH_SIZE)
    const different = names.flatMap(({ subdomain, version, target, tenant, desired }) => {
      const records = deriveRecords(`${subdomain}.${zone}`, target, tenant ?? NO_RECORDS, recordTemplate)
      const own = toRecordChanges({ owned: [], desired }, records)
      return own.length === 0 ? [] : [{ subdomain, version, desired: records, own }]
    })
    if (caller && lease && different.length > 0) await operations.republish(zone, different, caller, lease)
    nameCount += different.length
    for (const { subdomain, own } of different) changes.add(own.map(change => ({ subdomain, change })))
    return names
  }
  for (let after = ''; ; ) {
    const start = after
    // The statement locks as many rows as a sync does, in another order.
    const names = caller
      ? await withZone(zone, ({ lease }) => republishBatch(start, lease))
      : await republishBatch(start, null)
    if (names === null) return { kind: 'busy' }
    after = names.at(-1)?.subdomain ?? ''
    if (names.length < BATCH_SIZE) break
  }
  return { kind: 'planned', changes: changes.items, changeCount: changes.count, nameCount }
}

import type { ReadResult, Unavailable } from '../dns/domain/result.ts'
import { createRecords, type RecordChange, type RecordSet, type RecordTemplate } from '../dns/domain/rrset.ts'
import type { Pools } from '../naming/naming.ts'
import { applyAction, planWithoutZone } from './domain/action-plan.ts'
import { type DesiredName, indexRecords, planName } from './domain/plan.ts'
import type { ProviderClient } from './provider-client.ts'
import type { ReconcilerRepository } from './repository.ts'
import { toPlanOptions } from './sync-zone.ts'
import { type Busy, holdDuring, type WithZoneLock } from './zone-lock.ts'

export interface NameRecordsContext {
  readonly repository: Pick<ReconcilerRepository, 'findNames' | 'listZones'>
  readonly provider: Pick<ProviderClient, 'read'>
  readonly withZoneLock: WithZoneLock
  readonly recordTemplate: RecordTemplate
  readonly hasZoneTtl: boolean
  readonly pools: () => Pools
}

/** The desired records of a name and those of the zone. */
export interface ComparedName {
  readonly kind: 'compared'
  readonly desired: readonly RecordSet[]
  /** Every record set of the zone at or below the name. */
  readonly found: readonly RecordSet[]
  readonly changes: readonly RecordChange[]
  /** Why nothing is written; null: nothing is in the way. */
  readonly conflict: string | null
}

export interface PlannedAction {
  readonly kind: 'planned'
  readonly changes: readonly RecordChange[]
  /** Of `changes`: what this service did not write. */
  readonly deletedRecords: readonly RecordSet[]
  /** Why the zone could not be read; null: it was. */
  readonly unavailable: string | null
  readonly conflict: string | null
}

export type RecordAction =
  | { readonly action: 'release' }
  | { readonly action: 'update'; readonly address: string | null }

const BUSY = 'Another replica is updating the zone.'

/** A name without a row: nothing is desired, and whatever is there stays. */
const toUnknownName = (subdomain: string): DesiredName => ({
  subdomain,
  desired: [],
  owned: [],
  previous: [],
  hasInFlightWrite: false,
  isPurged: false,
})

const findName = async ({ repository }: NameRecordsContext, zone: string, subdomain: string): Promise<DesiredName> =>
  (await repository.findNames(zone, [subdomain]))[0] ?? toUnknownName(subdomain)

/**
 * Reads everything at and below the name. Under the lock of the zone, because a provider may plan its next write on the last
 * read.
 */
const readBranch = async (
  { provider, withZoneLock }: NameRecordsContext,
  zone: string,
  fqdn: string,
): Promise<ReadResult | Busy> =>
  (await withZoneLock(zone, lock => holdDuring(lock, () => provider.read(zone, { names: [], branches: [fqdn] })))) ?? {
    kind: 'busy',
  }

/** Compares the records of a name with those of the zone. Changes nothing. */
export const compareName = async (
  context: NameRecordsContext,
  zone: string,
  subdomain: string,
): Promise<ComparedName | Unavailable | Busy> => {
  const fqdn = `${subdomain}.${zone}`
  const read = await readBranch(context, zone, fqdn)
  if (read.kind !== 'read') return read
  const name = await findName(context, zone, subdomain)
  const current = indexRecords(zone, read)
  const plan = planName(current, name, await toPlanOptions(context, zone, [name]))
  return {
    kind: 'compared',
    desired: name.desired,
    found: current.atOrBelow(fqdn),
    changes: plan.kind === 'changes' ? plan.changes : [],
    conflict: plan.kind === 'conflict' ? plan.reason : null,
  }
}

/** What an action would change in the zone. If the zone cannot be read, what the database knows of it. */
export const planAction = async (
  context: NameRecordsContext,
  zone: string,
  subdomain: string,
  action: RecordAction,
): Promise<PlannedAction> => {
  const fqdn = `${subdomain}.${zone}`
  const read = await readBranch(context, zone, fqdn)
  const before = await findName(context, zone, subdomain)
  const address = action.action === 'update' ? action.address : null
  const after = applyAction(
    before,
    action.action,
    address === null ? before.desired : createRecords(fqdn, address, context.recordTemplate),
  )
  const nothing = { deletedRecords: [], conflict: null }
  if (read.kind !== 'read') {
    const unavailable = read.kind === 'busy' ? BUSY : read.reason
    return { kind: 'planned', ...nothing, changes: planWithoutZone(before, after), unavailable }
  }
  const plan = planName(indexRecords(zone, read), after, await toPlanOptions(context, zone, [after]))
  return plan.kind === 'conflict'
    ? { kind: 'planned', ...nothing, changes: [], unavailable: null, conflict: plan.reason }
    : { kind: 'planned', ...nothing, changes: plan.changes, deletedRecords: plan.deletedRecords, unavailable: null }
}

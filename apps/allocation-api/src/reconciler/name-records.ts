import type { Target } from '@pool/contract'
import type { Unavailable } from '../dns/domain/result.ts'
import type { RecordChange, RecordSet } from '../dns/domain/rrset.ts'
import { deriveRecords } from '../records/domain/derive.ts'
import { NO_RECORDS } from '../records/domain/stored.ts'
import type { DesiredName } from './domain/name.ts'
import { indexRecords, planName, toConflict } from './domain/plan.ts'
import { applyAction, toRecordChanges } from './domain/record-changes.ts'
import { type LockedZone, type ReconcilerTools, toPlanOptions, type WithZone } from './locked-zone.ts'

/** The desired records of a name and those of the zone. */
export interface ComparedName {
  readonly kind: 'compared'
  readonly desired: readonly RecordSet[]
  /** Every record set of the zone at or below the name. */
  readonly found: readonly RecordSet[]
  readonly changes: readonly RecordChange[]
  /** Why the name is not published by the changes; null: nothing is in the way. */
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
  | { readonly action: 'update'; readonly target: Target | null }

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

const findName = async ({ repository }: ReconcilerTools, zone: string, subdomain: string): Promise<DesiredName> =>
  (await repository.findNames(zone, [subdomain]))[0] ?? toUnknownName(subdomain)

/** Compares the records of a name with everything that the zone has at and below it. Changes nothing. */
export const compareName = async (zone: LockedZone, subdomain: string): Promise<ComparedName | Unavailable> => {
  const fqdn = `${subdomain}.${zone.name}`
  const read = await zone.read({ names: [], branches: [fqdn] })
  if (read.kind !== 'read') return read
  const name = await findName(zone.tools, zone.name, subdomain)
  const current = indexRecords(zone.name, read)
  const plan = planName(current, name, await zone.planOptions([name]))
  return {
    kind: 'compared',
    desired: name.desired,
    found: current.atOrBelow(fqdn),
    changes: plan.kind === 'changes' ? plan.changes : [],
    conflict: toConflict(plan),
  }
}

/** What an action would change in the zone. If the zone cannot be read, what the database knows of it. */
export const planAction = async (
  tools: ReconcilerTools,
  withZone: WithZone,
  zone: string,
  subdomain: string,
  action: RecordAction,
): Promise<PlannedAction> => {
  const fqdn = `${subdomain}.${zone}`
  // Under the lock of the zone, because a provider may plan its next write on the last read.
  const read = await withZone(zone, locked => locked.read({ names: [], branches: [fqdn] }))
  const before = await findName(tools, zone, subdomain)
  const target = action.action === 'update' ? action.target : null
  const tenant = target && (await tools.operations.findTenantRecords(zone, subdomain))
  const after = applyAction(
    before,
    action.action,
    target === null ? before.desired : deriveRecords(fqdn, target, tenant ?? NO_RECORDS, tools.recordTemplate),
  )
  const nothing = { deletedRecords: [], conflict: null }
  if (read?.kind !== 'read') {
    const unavailable = read?.reason ?? BUSY
    return { kind: 'planned', ...nothing, changes: toRecordChanges(before, after.desired), unavailable }
  }
  const plan = planName(indexRecords(zone, read), after, await toPlanOptions(tools, zone, [after]))
  const { changes, deletedRecords } = plan.kind === 'changes' ? plan : { changes: [], deletedRecords: [] }
  return { kind: 'planned', changes, deletedRecords, unavailable: null, conflict: toConflict(plan) }
}

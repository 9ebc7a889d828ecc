import { changeKey, recordKey } from '../../dns/domain/rrset.ts'
import type { DueName } from './name.ts'
import { type CurrentRecords, indexRecords, type Outcome, type Plan, type PlanOptions, planName } from './plan.ts'
import { maxSerial, parseMarkers } from './zone-marker.ts'

/** After so many attempts, what the provider does not delete no longer holds up the next holder. */
const MAX_ATTEMPTS = 3
/** Names of record sets in a reason. */
const MAX_NAMED = 5

/** What a read shows that began after the write of a sync. */
export interface ReadAfterWrite {
  readonly current: CurrentRecords
  /** The number in the marker; null: there is none. */
  readonly serial: number | null
}

export const toReadAfterWrite = (zone: string, read: Parameters<typeof indexRecords>[1]): ReadAfterWrite => {
  const markers = parseMarkers(zone, read.records)
  return { current: indexRecords(zone, read), serial: markers.length === 0 ? null : maxSerial(markers) }
}

/** Whether a purge is over only when a read after the write shows it. A first withdrawal is followed by drift checks. */
export const needsConfirmation = (
  { isPurged, desired, isDriftRepair }: DueName,
  plan: Plan,
  outcome: Outcome,
): boolean => {
  if (!isPurged || plan.kind !== 'changes') return false
  if (outcome.kind === 'skipped') return plan.isPartial && plan.deletedRecords.length > 0
  if (outcome.kind === 'failed') return outcome.cause === 'rejected' && desired.length > 0
  return outcome.kind === 'applied' && (desired.length > 0 || isDriftRepair)
}

const toReason = (leftovers: readonly string[]): string => {
  const more = leftovers.length > MAX_NAMED ? ` and ${leftovers.length - MAX_NAMED} more` : ''
  const named = leftovers.slice(0, MAX_NAMED).join(', ') + more
  return `Of an earlier holder, the DNS provider still has ${named}, although it was to delete that. Delete it there.`
}

/**
 * The outcome of a purge, of which `after` shows the effect: nothing of an earlier holder may be left. A write without effect
 * is a failure, so that it is not repeated without a pause. What is left after several attempts no longer holds up a holder
 * whose own records are live: it is named instead. `serial`: the number of the write; null: nothing shows it.
 */
export const confirmPurge = (
  { name, plan: written, outcome }: { readonly name: DueName; readonly plan: Plan; readonly outcome: Outcome },
  after: ReadAfterWrite,
  serial: number | null,
  options: PlanOptions,
): Outcome => {
  const { zone } = options
  if (serial !== null && after.serial !== null && after.serial < serial) {
    const reason = `The DNS provider still shows the zone ${zone} as it was before the last write. It is read again.`
    return { kind: 'failed', cause: 'zone', reason, isTransient: true }
  }
  const plan = planName(after.current, { ...name, hasInFlightWrite: false }, options)
  if (plan.kind === 'conflict') return { kind: 'failed', cause: 'foreign-record', reason: plan.reason }
  const own = plan.changes.filter(({ kind }) => kind === 'delete').map(changeKey)
  const all = new Set([...own.filter(key => after.current.byKey.has(key)), ...plan.deletedRecords.map(recordKey)])
  const changes = written.kind === 'changes' ? written.changes : []
  // Of a part of a purge, only what it deleted.
  const leftovers = outcome.kind === 'skipped' ? changes.map(changeKey).filter(key => all.has(key)) : [...all]
  if (leftovers.length === 0) return outcome
  const isLive = name.desired.length > 0 && plan.changes.every(({ kind }) => kind === 'delete')
  const isLast = name.failure === 'rejected' && name.attempts >= MAX_ATTEMPTS - 1
  const reason = toReason(leftovers)
  if (isLive && isLast && outcome.kind !== 'skipped') return { kind: 'applied', changes, leftover: reason }
  return outcome.kind === 'failed'
    ? { ...outcome, isTransient: isLive }
    : { kind: 'failed', cause: 'rejected', reason, isTransient: true }
}

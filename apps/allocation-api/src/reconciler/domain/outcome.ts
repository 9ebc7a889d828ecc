import type { HistoryEntry } from '@pool/contract'
import type { ApplyResult, Unavailable } from '../../dns/domain/result.ts'
import { isAtOrBelow, type RecordChange, type RecordSet } from '../../dns/domain/rrset.ts'
import { backoffMs } from './backoff.ts'
import type { DesiredRecords, DueName, NameVersion } from './name.ts'
import type { Plan } from './plan.ts'
import type { FailureCause } from './status.ts'
import { STOP_CAUSES, type StopCause, toStopReason } from './zone-marker.ts'

export interface Failure {
  readonly kind: 'failed'
  readonly cause: FailureCause
  /** For an operator: no key or token in it. */
  readonly reason: string
  readonly retryAfterMs?: number | undefined
}

/** What one sync achieved for one name. */
export type Outcome =
  | { readonly kind: 'applied'; readonly changes: readonly RecordChange[] }
  | Failure
  /** The provider did not get to this name, or not to all of its changes: it stays due. */
  | { readonly kind: 'skipped' }
  /** Another transaction has locked the row of this name: it stays due. */
  | { readonly kind: 'locked' }

export interface PlannedName {
  readonly name: DueName
  readonly plan: Plan
}

export interface NameOutcome {
  readonly name: DueName
  readonly outcome: Outcome
}

/** A record set of another writer that is deleted, as the history lists it. */
export type DeletedRecord = NonNullable<HistoryEntry['deletedRecords']>[number]

export interface AttemptedName extends NameVersion {
  /** What the write deletes although this service did not write it. */
  readonly deletedRecords: readonly DeletedRecord[]
}

export interface AppliedName extends DesiredRecords {
  /** For the history. */
  readonly event: 'published' | 'withdrawn' | 'repaired'
  readonly detail: string | null
}

export interface FailedName extends DesiredRecords {
  readonly failure: FailureCause
  /** For an operator: no key or token in it. */
  readonly reason: string
  readonly retryDelayMs: number
}

/** After the provider recovers, the waiting names become due within this time and not all at the same moment. */
const MAX_SPREAD_MS = 250

/** The pause of the names of a stopped zone. `resume` ends it. */
const STOPPED_RETRY_MS = 600_000

const isStopCause = (cause: FailureCause): boolean => STOP_CAUSES.some(stopCause => stopCause === cause)

export const toFailure = ({ reason, retryAfterMs, scope }: Unavailable): Failure => ({
  kind: 'failed',
  cause: scope === 'zone' ? 'zone' : 'provider',
  reason,
  retryAfterMs,
})

export const toStopFailure = (zone: string, cause: StopCause): Failure => ({
  kind: 'failed',
  cause,
  reason: toStopReason(zone, cause),
})

/** `result` is the provider's answer to the changes of all names of the sync. */
export const toOutcome = (fqdn: string, plan: Plan, result: ApplyResult): Outcome => {
  if (plan.kind === 'conflict') return { kind: 'failed', cause: 'foreign-record', reason: plan.reason }
  if (result.kind === 'unavailable') return toFailure(result)
  const rejection = result.rejected.find(({ name }) => isAtOrBelow(name, fqdn))
  if (rejection) {
    const reason = `The DNS provider rejected ${rejection.name}: ${rejection.reason}`
    return { kind: 'failed', cause: 'rejected', reason }
  }
  if (plan.isPartial || result.skipped?.some(name => isAtOrBelow(name, fqdn))) return { kind: 'skipped' }
  return { kind: 'applied', changes: plan.changes }
}

/** The failures of a name before this sync, all of one cause. */
export interface PreviousFailures {
  readonly attempts: number
  readonly failure: FailureCause | null
}

/**
 * Milliseconds until the next attempt. The circuit breaker decides when the provider is called again; every other cause
 * has a backoff for each name. `random` is from 0 to 1.
 */
export const toRetryDelayMs = (
  { attempts, failure }: PreviousFailures,
  { cause, retryAfterMs = 0 }: Failure,
  random: number,
): number => {
  if (cause === 'provider') return retryAfterMs + MAX_SPREAD_MS * random
  if (isStopCause(cause)) return STOPPED_RETRY_MS
  return Math.max(retryAfterMs, backoffMs(failure === cause ? attempts + 1 : 1, random))
}

const toDeletedRecord = ({ name, type, ttl, values }: RecordSet): DeletedRecord => ({
  name,
  type,
  ttl,
  data: [...values],
})

/** None if a record of another writer is in the way. */
export const toAttemptedNames = ({ name: { subdomain, version }, plan }: PlannedName): AttemptedName[] =>
  plan.kind === 'changes' ? [{ subdomain, version, deletedRecords: plan.deletedRecords.map(toDeletedRecord) }] : []

export const toAppliedNames = ({ name, outcome }: NameOutcome): AppliedName[] => {
  if (outcome.kind !== 'applied') return []
  const { subdomain, version, desired, isDriftRepair } = name
  const event = isDriftRepair ? 'repaired' : desired.length === 0 ? 'withdrawn' : 'published'
  const detail = `${outcome.changes.length} record sets differed from the records that this service had written.`
  return [{ subdomain, version, desired, event, detail: isDriftRepair ? detail : null }]
}

/** `random` returns a number from 0 to 1. */
export const toFailedNames = ({ name, outcome }: NameOutcome, random: () => number): FailedName[] => {
  if (outcome.kind !== 'failed') return []
  const { subdomain, version, desired } = name
  const { cause, reason } = outcome
  return [
    { subdomain, version, desired, failure: cause, reason, retryDelayMs: toRetryDelayMs(name, outcome, random()) },
  ]
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

/** The names of one sync: what one provider call can carry, and a bound on memory. */
export const MAX_BATCH_SIZE = 1_000

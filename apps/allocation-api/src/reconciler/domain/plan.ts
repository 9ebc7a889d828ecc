import type { HistoryEntry } from '@pool/contract'
import {
  type ApplyResult,
  type Hiding,
  toZoneRefusal,
  type Unavailable,
  type WantedRecords,
} from '../../dns/domain/result.ts'
import {
  changeKey,
  isAtOrBelow,
  namesUpTo,
  type RecordChange,
  type RecordSet,
  recordKey,
  sameRecordSet,
  sameValues,
} from '../../dns/domain/rrset.ts'
import { backoffMs } from './backoff.ts'
import type { DesiredName, DesiredRecords, DueName, NameVersion } from './name.ts'
import type { FailureCause } from './status.ts'
import { STOP_CAUSES, type StopCause, toStopReason } from './zone-marker.ts'

export interface PlanOptions {
  readonly zone: string
  /** The provider has one TTL for all records of a zone, so the desired TTL is not compared. */
  readonly hasZoneTtl: boolean
  /** Every managed zone. The records of one that lies below a purged name are not the name's. */
  readonly zones: readonly string[]
}

export interface PlannedChanges {
  readonly kind: 'changes'
  readonly changes: readonly RecordChange[]
  /** What `changes` deletes or replaces although this service did not write it. Only in a purge. */
  readonly deletedRecords: readonly RecordSet[]
  /** More changes are necessary after these. */
  readonly isPartial: boolean
  /** Why resolvers do not get the desired records, with instructions for an operator; null: they do. */
  readonly hidden: string | null
}

export type Plan =
  | PlannedChanges
  /** A foreign record is in the way. `reason` has instructions for an operator. */
  | { readonly kind: 'conflict'; readonly reason: string }

/** The records that the provider has, indexed. */
export interface CurrentRecords {
  readonly byKey: ReadonlyMap<string, RecordSet>
  readonly byName: ReadonlyMap<string, readonly RecordSet[]>
  /** Stored but not served. */
  readonly unserved: ReadonlyMap<string, RecordSet>
  /** All of them at or below a name that is one label below the zone. */
  readonly atOrBelow: (fqdn: string) => readonly RecordSet[]
  readonly hiding: Hiding
}

const NOTHING_HIDES: Hiding = new Map()

/** The label below `zone` of the name one label below `zone` that `name` is at or below; null if there is none. */
export const toSubdomain = (name: string, zone: string): string | null => {
  if (name === zone || !isAtOrBelow(name, zone)) return null
  const relative = name.slice(0, -zone.length - 1)
  if (!relative.includes('\\')) return relative.slice(relative.lastIndexOf('.') + 1)
  // A dot in a label is escaped (RFC 1035 section 5.1).
  return relative.match(/(?:[^.\\]|\\.)+/g)?.at(-1) ?? null
}

export const indexRecords = (
  zone: string,
  {
    records,
    unserved = [],
    hiding = NOTHING_HIDES,
  }: {
    readonly records: readonly RecordSet[]
    readonly unserved?: readonly RecordSet[]
    readonly hiding?: Hiding | undefined
  },
): CurrentRecords => {
  let branches: Map<string, RecordSet[]> | undefined
  return {
    byKey: new Map(records.map(set => [recordKey(set), set])),
    byName: Map.groupBy(records, set => set.name),
    unserved: new Map(unserved.map(set => [recordKey(set), set])),
    atOrBelow: fqdn => {
      // Most syncs purge no name.
      branches ??= Map.groupBy([...records, ...unserved], set => toSubdomain(set.name, zone) ?? '')
      return branches.get(fqdn.slice(0, -zone.length - 1)) ?? []
    },
    hiding,
  }
}

/** The records that the plans of `names` depend on: everything below a purged name, and otherwise each name on its own. */
export const toWantedRecords = (zone: string, names: readonly DesiredName[]): WantedRecords => {
  const purged = names.filter(name => name.isPurged)
  const others = names.filter(name => !name.isPurged)
  const toNames = ({ subdomain, desired, owned, previous }: DesiredName): string[] => [
    ...desired.flatMap(set => namesUpTo(set.name, `${subdomain}.${zone}`)),
    ...[...owned, ...previous].map(({ name }) => name),
  ]
  return {
    // Of a purged name too: whether another zone answers for its records is asked by name.
    names: [
      ...new Set([...others.flatMap(toNames), ...purged.flatMap(({ desired }) => desired.map(({ name }) => name))]),
    ],
    branches: purged.map(({ subdomain }) => `${subdomain}.${zone}`),
  }
}

/** The server that signs a zone writes these, and deletes them with the records that they are about (RFC 4035 section 2). */
const SIGNER_TYPES: readonly string[] = ['RRSIG', 'NSEC', 'NSEC3']

/**
 * Whether `wanted`, which differs from `present`, could not exist or would not be served as long as `present` exists, or would
 * hide it.
 */
const conflictsWith = (present: RecordSet, wanted: RecordSet): boolean => {
  if (SIGNER_TYPES.includes(present.type)) return false
  // A zone cut: other servers answer for the names at and below it (RFC 1034 section 4.2.1).
  if (present.type === 'NS') return true
  // RFC 6672 section 2.4: nothing below a DNAME.
  if (present.name !== wanted.name) return present.type === 'DNAME'
  // RFC 1034 section 3.6.2: a CNAME is the only record at its name.
  if (present.type === 'CNAME' || wanted.type === 'CNAME') return true
  // Beside a zone cut, only DS is data of this zone (RFC 4035 section 2.6).
  if (wanted.type === 'NS' && present.type !== 'DS') return true
  return present.type === wanted.type
}

/** The name at which something hides a record set; undefined: nothing does. Its delegation stays in the zone around it. */
const findHidingName = ({ name, type }: Pick<RecordSet, 'name' | 'type'>, hiding: Hiding): string | undefined => {
  if (hiding.size === 0) return undefined
  const labels = name.split('.')
  const isDelegation = type === 'NS' || type === 'DS'
  return labels
    .map((_, i) => labels.slice(i).join('.'))
    .find(above => hiding.has(above) && !(isDelegation && above === name))
}

/**
 * Why resolvers would not get the desired records; null: they would. They are written all the same, so that what hides them can
 * be removed without a moment in which nothing answers.
 */
export const explainHidden = (
  desired: readonly Pick<RecordSet, 'name' | 'type'>[],
  hiding = NOTHING_HIDES,
): string | null => {
  for (const set of desired) {
    const name = findHidingName(set, hiding)
    if (name === undefined) continue
    const what = hiding.get(name)
    return what === 'zone'
      ? `Another zone at the DNS provider, ${name}, answers for ${set.name}. Delete that zone.`
      : `A record of type ${what} at ${name} hides every name of the pool. Delete that record.`
  }
  return null
}

/** Whether the plan of `name` can depend on a record set at or below it that is not one of its desired ones. */
export const createRelevance = (zone: string, { subdomain, desired, owned, previous, isPurged }: DesiredName) => {
  if (isPurged) return () => true
  const fqdn = `${subdomain}.${zone}`
  const keys = new Set([...desired, ...owned, ...previous].map(recordKey))
  const names = new Set(desired.flatMap(set => namesUpTo(set.name, fqdn)))
  return (set: RecordSet): boolean => keys.has(recordKey(set)) || names.has(set.name)
}

/** The record sets at or below a purged name that are the name's. */
const toPurgeable = (current: CurrentRecords, fqdn: string, { zone, zones }: PlanOptions): readonly RecordSet[] => {
  const others = zones.filter(other => other !== zone && isAtOrBelow(other, fqdn))
  return current
    .atOrBelow(fqdn)
    .filter(({ name, type }) => !SIGNER_TYPES.includes(type) && !others.some(other => isAtOrBelow(name, other)))
}

/**
 * Desired minus current, for one name. Only record sets that the service owns are changed or deleted, unless the name is
 * purged. A foreign record set in the way is a conflict for this name only. A foreign set equal to the desired one is
 * adopted: after a restore from an older backup, the database finds records that this service wrote.
 *
 * After a write that was not confirmed, the plan repeats every change, whether or not the provider shows it: a provider
 * that rejects writes planned on an older state then rejects the late one, and any other applies the newer write last. A
 * hidden name is not confirmed before that is over, and is not written again until then.
 */
export const planName = (
  current: CurrentRecords,
  { subdomain, desired, owned, previous, hasInFlightWrite, isPurged }: DesiredName,
  options: PlanOptions,
): Plan => {
  const { zone, hasZoneTtl } = options
  const hidden = explainHidden(desired, current.hiding)
  const repeatsWrite = hasInFlightWrite && hidden === null
  const fqdn = `${subdomain}.${zone}`
  const ownedKeys = new Set(owned.map(recordKey))
  const desiredKeys = new Set(desired.map(recordKey))
  const maybeWritten = hasInFlightWrite ? [...previous, ...desired] : previous
  const isWritten = (set: RecordSet) =>
    maybeWritten.some(written => recordKey(written) === recordKey(set) && sameValues(written, set))
  const isOwned = (set: RecordSet) => ownedKeys.has(recordKey(set)) || isWritten(set)
  const isAsDesired = (present: RecordSet, set: RecordSet) =>
    hasZoneTtl ? recordKey(present) === recordKey(set) && sameValues(present, set) : sameRecordSet(present, set)
  const purgeable = new Set(isPurged ? toPurgeable(current, fqdn, options) : [])

  const conflict = desired
    .flatMap(set =>
      namesUpTo(set.name, fqdn)
        .flatMap(name => current.byName.get(name) ?? [])
        .filter(present => conflictsWith(present, set)),
    )
    .find(present => !isOwned(present) && !purgeable.has(present) && !desired.some(set => isAsDesired(present, set)))
  if (conflict) {
    const { name, type } = conflict
    return {
      kind: 'conflict',
      reason: `A record of type ${type} that is not managed by this service exists at ${name}. Delete it; a release of this name deletes it too.`,
    }
  }

  const dropsUnserved = (key: string): { readonly dropsUnserved?: true } => {
    const unserved = current.unserved.get(key)
    return unserved && purgeable.has(unserved) ? { dropsUnserved: true } : {}
  }
  // Deletions first: a provider that applies in order then never has a CNAME beside another type.
  const unwanted = new Map([...owned, ...previous].map(({ name, type }) => [recordKey({ name, type }), { name, type }]))
  const deletions = new Map<string, RecordChange>()
  for (const [key, { name, type }] of unwanted) {
    const present = current.byKey.get(key)
    if (!desiredKeys.has(key) && (present ? isOwned(present) : repeatsWrite))
      deletions.set(key, { kind: 'delete', name, type })
  }
  for (const { name, type } of purgeable) {
    const key = recordKey({ name, type })
    if (!desiredKeys.has(key)) deletions.set(key, { kind: 'delete', name, type, ...dropsUnserved(key) })
  }
  const upserts = desired.flatMap((set): RecordChange[] => {
    const key = recordKey(set)
    const present = current.byKey.get(key)
    const drops = dropsUnserved(key)
    const isNeeded = repeatsWrite || !present || !isAsDesired(present, set) || drops.dropsUnserved
    return isNeeded ? [{ kind: 'upsert', set, ...drops }] : []
  })
  const changes = [...deletions.values(), ...upserts]
  const changedKeys = new Set(changes.map(changeKey))
  // A provider without record sets can have the values of two writes in one set, if the first took effect late.
  const ownValues = Map.groupBy([...previous, ...desired], recordKey)
  const isOwnValue = (key: string, value: string) => ownValues.get(key)?.some(({ values }) => values.includes(value))
  const deletedRecords = Array.from(purgeable).filter(set => {
    const key = recordKey(set)
    return changedKeys.has(key) && !set.values.every(value => isOwnValue(key, value))
  })
  return { kind: 'changes', changes, deletedRecords, isPartial: false, hidden }
}

/**
 * Deletions of other writers' record sets at one name in one write. PowerDNS is slow at each over RFC 2136, so
 * that many take most of the time of a call.
 */
const MAX_DELETIONS = 500

/**
 * Bounds the deletions of other writers' record sets in one write: of the names with more than `maxDeletions`, the first one
 * gets that many and the next ones none; all of these are partial. The other names do not wait for them. A partial plan
 * writes no record set, so a name is published only when nothing is left of its earlier holder.
 */
export const limitPlans = (plans: readonly Plan[], maxDeletions = MAX_DELETIONS): Plan[] => {
  let isFirst = true
  return plans.map(plan => {
    if (plan.kind === 'conflict' || plan.deletedRecords.length <= maxDeletions) return plan
    const deletedRecords = isFirst ? plan.deletedRecords.slice(0, maxDeletions) : []
    isFirst = false
    const taken = new Set(deletedRecords.map(recordKey))
    const left = new Set(plan.deletedRecords.map(recordKey).filter(key => !taken.has(key)))
    const changes = plan.changes.filter(change => change.kind === 'delete' && !left.has(changeKey(change)))
    return { ...plan, changes, deletedRecords, isPartial: true }
  })
}

/** Why resolvers do not get the desired records even after the planned changes; null: they do. */
export const toConflict = (plan: Plan): string | null => (plan.kind === 'conflict' ? plan.reason : plan.hidden)

export interface Failure {
  readonly kind: 'failed'
  readonly cause: FailureCause
  /** For an operator: no key or token in it. */
  readonly reason: string
  readonly retryAfterMs?: number | undefined
  /** The next attempt may succeed although nothing else changes. */
  readonly isTransient?: boolean
}

/** What one sync achieved for one name. */
export type Outcome =
  | {
      readonly kind: 'applied'
      readonly changes: readonly RecordChange[]
      /** What the provider still has of an earlier holder, for the holder and operators. */
      readonly leftover?: string
    }
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
  readonly leftover: string | null
}

export interface FailedName extends DesiredRecords {
  readonly failure: FailureCause
  /** For an operator: no key or token in it. */
  readonly reason: string
  readonly retryDelayMs: number
  /** The distance to the next attempts of other rejected names of the zone; 0: it waits for none of them. */
  readonly paceMs: number
  readonly isTransient: boolean
}

/** After the provider recovers, the waiting names become due within this time and not all at the same moment. */
const MAX_SPREAD_MS = 250

/** The pause of the names of a stopped zone. `resume` ends it. */
const STOPPED_RETRY_MS = 600_000

/** Of the calls of one zone, on average. */
const CALL_PACE_MS = 3_500

/** Calls of a sync, apart from the search for the record sets that the provider rejects. */
const CALLS_OF_SYNC = 6

/**
 * Rejected names are tried one after the other, because the provider is called up to twice for each of their record sets. One
 * that is accepted makes the others due.
 */
const toPaceMs = (cause: FailureCause, { desired, owned }: DesiredName): number =>
  cause === 'rejected' ? CALL_PACE_MS * (CALLS_OF_SYNC + 2 * Math.max(desired.length, owned.length)) : 0

const isStopCause = (cause: FailureCause): boolean => STOP_CAUSES.some(stopCause => stopCause === cause)

export const toFailure = ({ reason, retryAfterMs, scope, isTransient }: Unavailable): Failure => ({
  kind: 'failed',
  cause: scope === 'zone' ? 'zone' : 'provider',
  reason,
  retryAfterMs,
  isTransient: scope !== 'zone' || isTransient === true,
})

export const toStopFailure = (zone: string, cause: StopCause): Failure => ({
  kind: 'failed',
  cause,
  reason: toStopReason(zone, cause),
})

/** `result` is the provider's answer to the changes of all names of the sync. */
export const toOutcome = (fqdn: string, plan: Plan, result: ApplyResult): Outcome => {
  if (plan.kind === 'conflict') return { kind: 'failed', cause: 'foreign-record', reason: plan.reason }
  // What hides a name can also be why the provider does not take its records: Knot takes nothing below a DNAME.
  const toReason = (reason: string) => plan.hidden ?? reason
  if (result.kind === 'unavailable')
    return toFailure(result.scope === 'zone' ? { ...result, reason: toReason(result.reason) } : result)
  const rejection = result.rejected.find(({ name }) => isAtOrBelow(name, fqdn))
  if (rejection?.isZoneFull) {
    const reason = `The zone has no room for ${rejection.name}: ${rejection.reason}. The name waits until there is room.`
    return toFailure(toZoneRefusal(reason))
  }
  if (rejection) {
    const reason = toReason(`The DNS provider rejected ${rejection.name}: ${rejection.reason}`)
    return { kind: 'failed', cause: 'rejected', reason }
  }
  if (plan.isPartial || result.skipped?.some(name => isAtOrBelow(name, fqdn))) return { kind: 'skipped' }
  if (plan.hidden !== null) return { kind: 'failed', cause: 'foreign-record', reason: plan.hidden }
  return { kind: 'applied', changes: plan.changes }
}

/** The failures of a name before this sync, and the cause of the last one. */
export interface PreviousFailures {
  readonly attempts: number
  readonly failure: FailureCause | null
}

/**
 * Of a name that waits for the provider: the circuit breaker decides when it is called again, but it does not open if only
 * the calls of one zone, or only writes, fail.
 */
const MAX_PROVIDER_BACKOFF_MS = 10_000

/** Of names whose zone is missing, or cannot be read. With its jitter not longer than the pause after a refusal of the zone. */
const MAX_ZONE_BACKOFF_MS = 50_000

/** Milliseconds until the next attempt. `random` is from 0 to 1. */
export const toRetryDelayMs = (
  { attempts, failure }: PreviousFailures,
  { cause, retryAfterMs = 0, isTransient = false }: Failure,
  random: number,
): number => {
  if (cause === 'provider') {
    const ownMs = backoffMs(failure === 'provider' ? attempts + 1 : 1, random, MAX_PROVIDER_BACKOFF_MS)
    return Math.max(retryAfterMs + MAX_SPREAD_MS * random, ownMs)
  }
  if (isStopCause(cause)) return STOPPED_RETRY_MS
  // Attempts that ended for changing causes have a backoff too. Those of an outage say nothing about the name.
  const maxMs = cause === 'zone' && !isTransient ? MAX_ZONE_BACKOFF_MS : undefined
  return Math.max(retryAfterMs, backoffMs(failure === 'provider' ? 1 : attempts + 1, random, maxMs))
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
  const { length } = outcome.changes
  const differed = `${length} record sets differed from the records that this service had written.`
  const drift = length > 0 ? differed : 'Nothing differs any more: another writer changed it back.'
  const { leftover = null } = outcome
  return [{ subdomain, version, desired, event, detail: leftover ?? (isDriftRepair ? drift : null), leftover }]
}

/** `random` returns a number from 0 to 1. */
export const toFailedNames = ({ name, outcome }: NameOutcome, random: () => number): FailedName[] => {
  if (outcome.kind !== 'failed') return []
  const { subdomain, version, desired } = name
  const { cause, reason, isTransient = false } = outcome
  const retryDelayMs = toRetryDelayMs(name, outcome, random())
  const paceMs = isTransient ? 0 : toPaceMs(cause, name)
  return [{ subdomain, version, desired, failure: cause, reason, retryDelayMs, paceMs, isTransient }]
}

/** The result of a sync for the callers that wait for it. Why a name was not applied is in the table. */
export interface SyncResult {
  /** The applied version by subdomain, without those of which the table has more to say. */
  readonly applied: ReadonlyMap<string, number>
  /** The names that failed, by subdomain, and whether and when the next attempt may succeed. */
  readonly failed: ReadonlyMap<string, Pick<FailedName, 'retryDelayMs' | 'isTransient'>>
  /** The sync made progress, and the batch was full or the provider skipped some names: more names may be due. */
  readonly hasMore: boolean
}

export const NOTHING_SYNCED: SyncResult = { applied: new Map(), failed: new Map(), hasMore: false }

/**
 * A sync that achieved nothing is not repeated without a pause: the names that the provider did not get to have failed then.
 * A failed name is progress, because the next sync is without it. `advanced`: names of which a part was written.
 */
export const requireProgress = (outcomes: readonly NameOutcome[], advanced: ReadonlySet<string>): NameOutcome[] => {
  const isProgress = ({ name, outcome }: NameOutcome) =>
    outcome.kind === 'applied' || outcome.kind === 'failed' || advanced.has(name.subdomain)
  if (outcomes.some(isProgress)) return [...outcomes]
  const reason = 'The DNS provider did not get to the changes of this name.'
  const failure: Failure = { kind: 'failed', cause: 'zone', reason, isTransient: true }
  return outcomes.map(one => (one.outcome.kind === 'skipped' ? { name: one.name, outcome: failure } : one))
}

/** The names of one sync: what one provider call can carry, and a bound on memory. */
export const MAX_BATCH_SIZE = 1_000

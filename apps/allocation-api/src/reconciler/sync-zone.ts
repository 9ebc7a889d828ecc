import type { ApplyResult } from '../dns/domain/result.ts'
import { type Failure, type Outcome, toFailure, toOutcome, toRetryDelayMs } from './domain/outcome.ts'
import { indexRecords, type Plan, planName } from './domain/plan.ts'
import type { ProviderClient } from './provider-client.ts'
import type { AppliedName, DueName, FailedName, ReconcilerRepository } from './repository.ts'
import type { ZoneLock } from './zone-lock.ts'

export interface SyncContext {
  readonly repository: Pick<
    ReconcilerRepository,
    'listDue' | 'markAttempted' | 'markApplied' | 'markFailed' | 'recordSync'
  >
  readonly provider: Pick<ProviderClient, 'read' | 'apply'>
  readonly hasZoneTtl: boolean
  /** Milliseconds from one drift check of a zone to the next. */
  readonly driftIntervalMs: number
  /** From 0 to 1. */
  readonly random: () => number
}

/** The result of a sync for the callers that wait for it. Why a name was not applied is in the table. */
export interface SyncResult {
  /** The applied version by subdomain. */
  readonly applied: ReadonlyMap<string, number>
  /** The batch was full, or the provider skipped some names: more names may be due. */
  readonly hasMore: boolean
}

export const NOTHING_SYNCED: SyncResult = { applied: new Map(), hasMore: false }

/** What one provider call can carry, and a bound on memory. */
const MAX_BATCH_SIZE = 1_000

const NOTHING_TO_APPLY: ApplyResult = { kind: 'applied', rejected: [] }

interface PlannedName {
  readonly name: DueName
  readonly plan: Plan
}

interface NameOutcome {
  readonly name: DueName
  readonly outcome: Outcome
}

/**
 * One sync of a zone, under its lock: read the zone, subtract it from the desired records, apply the difference, save
 * the outcomes. It is the same after a commit, a crash or an outage, and repeating it changes nothing.
 */
export const syncZone = async (context: SyncContext, zone: string, lock: ZoneLock): Promise<SyncResult> => {
  const { repository, provider, hasZoneTtl } = context
  const toFqdn = ({ subdomain }: DueName) => `${subdomain}.${zone}`
  let names = await repository.listDue(zone, MAX_BATCH_SIZE)
  if (names.length === 0) return NOTHING_SYNCED
  const read = await provider.read(zone, names.map(toFqdn))
  if (read.kind === 'unavailable') {
    const outcome = toFailure(read)
    return saveOutcomes(
      context,
      zone,
      names.map(name => ({ name, outcome })),
    )
  }
  // Changes made during the read need not wait for the next sync: the lock excludes other writers since the read.
  if (read.isFullZone) names = await repository.listDue(zone, MAX_BATCH_SIZE)
  const current = indexRecords(read.records)
  const planned = names.map(name => ({ name, plan: planName(current, name, { zone, hasZoneTtl }) }))
  const result = await applyPlans(context, zone, lock, planned)
  return saveOutcomes(
    context,
    zone,
    planned.map(({ name, plan }) => ({ name, outcome: toOutcome(toFqdn(name), plan, result) })),
  )
}

const applyPlans = async (
  { repository, provider }: SyncContext,
  zone: string,
  lock: ZoneLock,
  planned: readonly PlannedName[],
): Promise<ApplyResult> => {
  const changes = planned.flatMap(({ plan }) => (plan.kind === 'changes' ? plan.changes : []))
  if (changes.length === 0) return NOTHING_TO_APPLY
  const attempted = planned.filter(({ plan }) => plan.kind === 'changes').map(({ name }) => name)
  await repository.markAttempted(zone, attempted)
  await lock.assertHeld()
  return provider.apply(zone, changes)
}

const toAppliedName = ({ name, outcome }: NameOutcome): AppliedName[] => {
  if (outcome.kind !== 'applied') return []
  const { subdomain, version, desired, isDriftRepair } = name
  const event = isDriftRepair ? 'repaired' : desired.length === 0 ? 'withdrawn' : 'published'
  const detail = `${outcome.changes.length} record sets differed from the records that this service had written.`
  return [{ subdomain, version, desired, event, detail: isDriftRepair ? detail : null }]
}

const toFailedName = (name: DueName, failure: Failure, random: number): FailedName => ({
  subdomain: name.subdomain,
  version: name.version,
  failure: failure.cause,
  reason: failure.reason,
  retryDelayMs: toRetryDelayMs(name, failure, random),
})

const saveOutcomes = async (
  { repository, driftIntervalMs, random }: SyncContext,
  zone: string,
  outcomes: readonly NameOutcome[],
): Promise<SyncResult> => {
  const applied = outcomes.flatMap(toAppliedName)
  if (applied.length > 0) await repository.markApplied(zone, applied)
  const failed = outcomes.flatMap(({ name, outcome }) =>
    outcome.kind === 'failed' ? [toFailedName(name, outcome, random())] : [],
  )
  if (failed.length > 0) await repository.markFailed(zone, failed)
  await repository.recordSync(zone, {
    isComplete: applied.length === outcomes.length,
    firstDriftCheckMs: driftIntervalMs * (0.5 + 0.5 * random()),
  })
  return {
    applied: new Map(applied.map(({ subdomain, version }) => [subdomain, version])),
    hasMore: outcomes.length === MAX_BATCH_SIZE || applied.length + failed.length < outcomes.length,
  }
}

import { isAtOrBelow, type RecordChange } from '../dns/domain/rrset.ts'
import type { Unavailable } from '../dns/provider.ts'
import { pauseMs } from './domain/backoff.ts'
import { indexRecords, planName } from './domain/plan.ts'
import type { FailureCause } from './domain/status.ts'
import type { Calls } from './provider-client.ts'
import type { AppliedName, DueName, ZoneStore } from './sync-repository.ts'
import type { ZoneLock } from './zone-lock.ts'

/** What became of the names of a pass, for those who wait; why one was not applied stands in the table. */
export interface PassReport {
  readonly applied: ReadonlyMap<string, number>
  /** The pass took as many names as it can, or could not try all of them; there may be others. */
  readonly isMoreDue: boolean
}

export interface PassDependencies {
  readonly zones: Pick<ZoneStore, 'due' | 'intend' | 'applied' | 'failed' | 'passed'>
  readonly calls: Pick<Calls, 'read' | 'apply'>
  readonly hasZoneTtl: boolean
  /** Milliseconds from one comparison of a zone to the next. */
  readonly comparisonEveryMs: number
  /** From 0 to 1. */
  readonly random: () => number
}

/** Names taken into one pass: what one provider call can carry, and a bound on memory. */
const BATCH = 1_000

/** Names that wait for the provider to be back come in its first moments and not all in the first. */
const SPREAD_MS = 250

interface Failure {
  readonly cause: FailureCause
  readonly reason: string
  readonly retryAfterMs?: number | undefined
}

const failureOf = ({ reason, retryAfterMs, scope }: Unavailable): Failure => ({
  cause: scope === 'zone' ? 'zone' : 'provider',
  reason,
  retryAfterMs,
})

const appliedOf = (
  { subdomain, version, desired, isRepair }: DueName,
  changes: readonly RecordChange[],
): AppliedName => ({
  subdomain,
  version,
  desired,
  event: isRepair ? 'repaired' : desired.length === 0 ? 'withdrawn' : 'published',
  detail: isRepair ? `${changes.length} record sets differed from what this service had written.` : null,
})

/**
 * One pass over a zone, under its claim: read what is there, subtract, apply the difference, remember what is applied.
 * It is the same after a commit, a crash or an outage, and doing it once more changes nothing.
 */
export const createPass = ({ zones, calls, hasZoneTtl, comparisonEveryMs, random }: PassDependencies) => {
  /** A provider that is down decides itself when all are tried again; any other trouble is the name's own. */
  const pauseOf = (name: DueName, { cause, retryAfterMs = 0 }: Failure): number => {
    if (cause === 'provider') return retryAfterMs + SPREAD_MS * random()
    return Math.max(retryAfterMs, pauseMs(name.failure === cause ? name.attempts + 1 : 1, random()))
  }

  return async (zone: string, claim: ZoneLock): Promise<PassReport> => {
    let due = await zones.due(zone, BATCH)
    const plans = new Map<DueName, readonly RecordChange[]>()
    const failures = new Map<DueName, Failure>()
    const skipped = new Set<DueName>()

    /** Reads, plans and applies; what it comes to for every name stands in the maps. */
    const work = async (): Promise<Unavailable | undefined> => {
      const fqdn = (name: DueName) => `${name.subdomain}.${zone}`
      const read = await calls.read(zone, due.map(fqdn))
      if (read.kind === 'unavailable') return read
      // What was stated while the provider was read need not wait for the next pass: nobody else has written since.
      if (read.isFullZone) due = await zones.due(zone, BATCH)
      const current = indexRecords(read.records)
      for (const name of due) {
        const plan = planName(current, name, { zone, hasZoneTtl: hasZoneTtl })
        if (plan.kind === 'changes') plans.set(name, plan.changes)
        else failures.set(name, { cause: 'foreign-record', reason: plan.reason })
      }
      const changes = Array.from(plans.values()).flat()
      if (changes.length === 0) return undefined
      await zones.intend(zone, Array.from(plans.keys()))
      await claim.confirm()
      const result = await calls.apply(zone, changes)
      if (result.kind === 'unavailable') return result
      for (const name of plans.keys()) {
        const refusal = result.refused.find(refused => isAtOrBelow(refused.name, fqdn(name)))
        if (refusal) {
          const reason = `The DNS provider refused ${refusal.name}: ${refusal.reason}`
          failures.set(name, { cause: 'refused', reason })
        } else if (result.skipped?.some(owner => isAtOrBelow(owner, fqdn(name)))) skipped.add(name)
      }
      return undefined
    }

    if (due.length === 0) return { applied: new Map(), isMoreDue: false }
    const unavailable = await work()
    if (unavailable) {
      for (const name of due) if (!failures.has(name)) failures.set(name, failureOf(unavailable))
    }
    const done = due.filter(name => !failures.has(name) && !skipped.has(name))
    if (done.length > 0)
      await zones.applied(
        zone,
        done.map(name => appliedOf(name, plans.get(name) ?? [])),
      )
    if (failures.size > 0) {
      const failed = Array.from(failures, ([name, failure]) => ({
        subdomain: name.subdomain,
        version: name.version,
        failure: failure.cause,
        reason: failure.reason,
        pauseMs: pauseOf(name, failure),
      }))
      await zones.failed(zone, failed)
    }
    const isConverged = done.length === due.length
    await zones.passed(zone, { isConverged, comparisonInMs: comparisonEveryMs * (0.5 + 0.5 * random()) })
    return {
      applied: new Map(done.map(name => [name.subdomain, name.version])),
      isMoreDue: due.length === BATCH || skipped.size > 0,
    }
  }
}

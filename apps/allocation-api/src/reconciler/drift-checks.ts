import type { Unavailable } from '../dns/domain/result.ts'
import { diffZone, type ZoneDiff } from './diff-zone.ts'
import type { Busy, ReconcilerParts, WithZone } from './locked-zone.ts'

/** A drift check that did not end is started again after this time, by any replica. */
const CLAIM_MS = 60_000

/** Finds records that the provider no longer has as they were written, periodically and on request. */
export const createDriftChecks = (parts: ReconcilerParts, withZone: WithZone) => {
  const { repository, driftIntervalMs, random, observer } = parts
  const inFlight = new Map<string, Promise<void>>()

  /** Makes drifted names due, and with `retryFailed` also the names that failed before. */
  const check = async (zone: string, retryFailed = false): Promise<ZoneDiff | Unavailable | Busy> => {
    const result = await withZone(zone, async locked => {
      const diff = await diffZone(locked, 'apply')
      if (retryFailed && diff.kind === 'compared') await repository.retryNow(zone)
      return diff
    })
    if (result === null) return { kind: 'busy' }
    // The jitter spreads replicas and zones over time.
    if (result.kind === 'compared') await repository.recordDriftCheck(zone, driftIntervalMs * (0.9 + 0.2 * random()))
    observer.onDriftCheck(zone, result)
    return result
  }

  const checkInBackground = async (zone: string): Promise<void> => {
    try {
      await check(zone)
    } catch (error) {
      observer.onError('zone sync failed', error, { zone })
    } finally {
      inFlight.delete(zone)
    }
  }

  return {
    check,

    /** Starts the check of each zone where it is due, so that none waits for that of a large zone. */
    async startDue(): Promise<void> {
      for (const zone of await repository.claimDueDriftChecks(Math.min(CLAIM_MS, driftIntervalMs))) {
        if (!inFlight.has(zone)) inFlight.set(zone, checkInBackground(zone))
      }
    },

    /** Resolves when the checks in flight have ended. */
    async whenIdle(): Promise<void> {
      await Promise.all(inFlight.values())
    },
  }
}

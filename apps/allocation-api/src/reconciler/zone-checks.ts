import type { Unavailable } from '../dns/domain/result.ts'
import { diffZone, type ZoneDiff } from './diff-zone.ts'
import { backoffMs } from './domain/backoff.ts'
import type { Busy, LockedZone, ReconcilerTools, WithZone } from './locked-zone.ts'
import { findOrphans, NAMES_PER_STATEMENT } from './orphans.ts'

/** A drift check that did not end is started again after this time, by any replica. */
const CLAIM_MS = 60_000

/** Finds records that the provider no longer has as they were written, periodically and on request. */
export const createDriftChecks = (tools: ReconcilerTools, withZone: WithZone) => {
  const { repository, driftIntervalMs, random, observer } = tools
  const inFlight = new Map<string, Promise<void>>()

  /** Makes drifted names due, and with `retryFailed` also the names that failed before. */
  const check = async (zone: string, retryFailed = false): Promise<ZoneDiff | Unavailable | Busy> => {
    const result = await withZone(zone, async locked => {
      const diff = await diffZone(locked, 'apply')
      if (retryFailed && diff.kind === 'compared') await repository.retryNow(zone, locked.lease)
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

/** The longest pause after a marker check that failed, without its jitter. */
const MAX_MARKER_RETRY_MS = 60_000

/**
 * Keeps the names out of use whose records were in the zone before the service. A zone that it has written has only names
 * of its own, and orphans that an operator knows of. False if the zone could not be read.
 */
const keepUnknownNames = async (zone: LockedZone): Promise<boolean> => {
  const { operations, observer } = zone.tools
  const subdomains: string[] = []
  for await (const page of zone.scan()) {
    if (page.kind === 'unavailable') return false
    // A delegation is the target of an orphan too.
    const found = new Set([...page.orphans.map(({ subdomain }) => subdomain), ...page.delegated])
    const unknown = await findOrphans(
      zone,
      Array.from(found, subdomain => ({ subdomain })),
    )
    subdomains.push(...unknown.map(({ subdomain }) => subdomain))
  }
  for (let i = 0; i < subdomains.length; i += NAMES_PER_STATEMENT) {
    await operations.keepUnknown(zone.name, subdomains.slice(i, i + NAMES_PER_STATEMENT), zone.lease)
  }
  await operations.freeUnknown(zone.name, subdomains, zone.lease)
  if (subdomains.length > 0) observer.onUnknownNames(zone.name, subdomains)
  return true
}

/** False if the zone could not be read. */
const checkMarker = async (zone: LockedZone): Promise<boolean> => {
  if (await zone.findOtherProvider()) return true
  const read = await zone.readMarkers()
  if (read.kind === 'unavailable') return false
  await zone.checkMarkers(read.markers, 'apply')
  return true
}

/**
 * A job that compares the marker of each zone with the database once after the start, because a restored database may have
 * nothing to write, and its next drift check may be far away. It also probes the provider when the pause of an open circuit is
 * over and no other call does. It checks one zone after the other, so that other work on a slow provider does not wait for all
 * of them.
 */
export const createMarkerChecks = (
  { provider, pools, now, random, observer, operations, keepsUnknown }: ReconcilerTools,
  withZone: WithZone,
): ((signal: AbortSignal) => Promise<void>) => {
  const checked = new Set<string>()
  /** Whether a zone can have unknown names: decided once, before the requests that follow. */
  const mayHaveUnknown = new Map<string, boolean>()
  const attempts = new Map<string, number>()
  const retryAt = new Map<string, number>()

  const findDueZone = (): string | null => {
    const probed = provider.findZoneToProbe()
    if (probed !== null || provider.isCircuitOpen()) return probed
    const { managed, draining } = pools()
    const isDue = (zone: string) => !checked.has(zone) && now() >= (retryAt.get(zone) ?? 0)
    return [...managed, ...draining].find(isDue) ?? null
  }

  return async signal => {
    while (!signal.aborted) {
      const zone = findDueZone()
      if (zone === null) return
      const count = (attempts.get(zone) ?? 0) + 1
      attempts.set(zone, count)
      retryAt.set(zone, now() + backoffMs(count, random(), MAX_MARKER_RETRY_MS))
      try {
        if (!mayHaveUnknown.has(zone)) {
          mayHaveUnknown.set(zone, keepsUnknown && (await operations.mayHaveUnknown(zone)))
        }
        const isDone = await withZone(
          zone,
          async locked =>
            (await checkMarker(locked)) && (!mayHaveUnknown.get(zone) || (await keepUnknownNames(locked))),
        )
        if (isDone) mayHaveUnknown.set(zone, false)
        // Another replica has the lock: the next run tries again.
        if (isDone === null) return
        if (isDone) checked.add(zone)
      } catch (error) {
        observer.onError('zone sync failed', error, { zone })
        return
      }
    }
  }
}

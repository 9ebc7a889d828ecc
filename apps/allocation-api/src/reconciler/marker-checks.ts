import type { LockedZone, ReconcilerParts, WithZone } from './locked-zone.ts'

/** The pause after a check that failed, without its jitter of a fifth either way. */
const RETRY_MS = 10_000

/** False if the zone could not be read. */
const checkMarker = async (zone: LockedZone): Promise<boolean> => {
  if (await zone.findOtherProvider()) return true
  const read = await zone.readMarkers()
  if (read.kind === 'unavailable') return false
  await zone.assertHeld()
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
  { provider, pools, now, random, observer }: ReconcilerParts,
  withZone: WithZone,
): ((signal: AbortSignal) => Promise<void>) => {
  const checked = new Set<string>()
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
      retryAt.set(zone, now() + RETRY_MS * (0.8 + 0.4 * random()))
      try {
        const isDone = await withZone(zone, checkMarker)
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

import type { ApplyResult, Unavailable } from '../dns/domain/result.ts'
import {
  createMarkerRecord,
  findStopCause,
  isMarkerOutdated,
  isOwnProvider,
  type StopCause,
  toMarkerName,
  type ZoneMarker,
} from './domain/zone-marker.ts'
import type { ProviderClient } from './provider-client.ts'
import type { ZoneLock } from './zone-lock.ts'
import type { ZoneWritesRepository } from './zone-writes.ts'

export interface ZoneStopObserver {
  onZoneStopped(zone: string, cause: StopCause): void
  /** The provider does not accept the marker, so nothing shows later that a restored database is older than the zone. */
  onMarkerRejected(zone: string, reason: string): void
}

export interface MarkerContext {
  readonly zoneWrites: Pick<ZoneWritesRepository, 'find' | 'stop' | 'raise'>
  readonly provider: Pick<ProviderClient, 'read' | 'apply'>
  readonly providerKind: string
  /** Seconds. */
  readonly markerTtl: number
  /** False: this process writes to no zone. */
  readonly writesZones: boolean
  readonly observer: ZoneStopObserver
}

/** Stops the writes to the zone, and reports it if they were not stopped before. */
export const stopZone = async (
  { zoneWrites, observer }: Pick<MarkerContext, 'zoneWrites' | 'observer'>,
  zone: string,
  cause: StopCause,
): Promise<void> => {
  if (await zoneWrites.stop(zone, cause)) observer.onZoneStopped(zone, cause)
}

/** The names are published nevertheless: without the marker, only the protection of a later restore is missing. */
export const reportMarkerRejection = (observer: ZoneStopObserver, zone: string, result: ApplyResult): void => {
  const rejection = result.kind === 'applied' && result.rejected.find(({ name }) => name === toMarkerName(zone))
  if (rejection) observer.onMarkerRejected(zone, rejection.reason)
}

/** Null if the provider of this process is that of the zone. */
export const findOtherProvider = async (
  { zoneWrites, providerKind }: Pick<MarkerContext, 'zoneWrites' | 'providerKind'>,
  zone: string,
): Promise<Unavailable | null> => {
  const writes = await zoneWrites.find(zone)
  if (isOwnProvider(writes, providerKind)) return null
  const reason = `The zone ${zone} is published with ${writes.providerKind}, and this replica is configured with ${providerKind}.`
  return { kind: 'unavailable', scope: 'zone', reason }
}

export interface MarkerCheck {
  /** Why the zone must not be written; null: it can be. */
  readonly stopCause: StopCause | null
  /** The marker is missing or older than the last write. */
  readonly isOutdated: boolean
}

/** Compares the markers of a read that has ended with the database. `apply` stops the zone if it must not be written. */
export const checkMarkers = async (
  context: MarkerContext,
  zone: string,
  markers: readonly ZoneMarker[],
  mode: 'dry-run' | 'apply',
): Promise<MarkerCheck> => {
  const writes = await context.zoneWrites.find(zone)
  const stopCause = findStopCause(markers, writes)
  if (stopCause && mode === 'apply') await stopZone(context, zone, stopCause)
  return { stopCause, isOutdated: isMarkerOutdated(markers, writes) }
}

/** Writes the marker alone. It reads it first: a provider that replaces whole zones plans the write on that read. */
export const writeMarker = async (
  context: Pick<MarkerContext, 'provider' | 'providerKind' | 'markerTtl' | 'observer'> & {
    readonly zoneWrites: Pick<ZoneWritesRepository, 'find' | 'raise'>
  },
  zone: string,
  lock: ZoneLock,
): Promise<ApplyResult> => {
  const { zoneWrites, provider, providerKind, markerTtl, observer } = context
  const read = await provider.read(zone, { names: [toMarkerName(zone)], branches: [] })
  if (read.kind === 'unavailable') return read
  const { installation } = await zoneWrites.find(zone)
  const serial = await zoneWrites.raise(zone, providerKind)
  await lock.assertHeld()
  const set = createMarkerRecord(zone, { installation, serial }, markerTtl)
  const result = await provider.apply(zone, [{ kind: 'upsert', set }])
  reportMarkerRejection(observer, zone, result)
  return result
}

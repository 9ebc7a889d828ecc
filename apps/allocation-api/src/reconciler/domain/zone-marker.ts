import type { RecordSet } from '../../dns/domain/rrset.ts'

/** Why nothing is written to a zone until an operator decides. `imported`: the database was filled by an import. */
export const STOP_CAUSES = ['database-older', 'other-installation', 'imported'] as const
export type StopCause = (typeof STOP_CAUSES)[number]

/**
 * A record in each zone that says which database wrote the zone last, and the number of that write. The database commits
 * the number before it writes, so a zone with a higher number was written by a later state of the database, or by a copy.
 */
export interface ZoneMarker {
  /** The id of the database. */
  readonly installation: string
  readonly serial: number
}

/** What the database knows about a zone. */
export interface ZoneWrites extends ZoneMarker {
  readonly stoppedCause: StopCause | null
  /** Milliseconds since; null: the zone is not stopped. */
  readonly stoppedMsAgo: number | null
  /** The number of the last write that the provider confirmed with its marker, and milliseconds since; null: none is known. */
  readonly confirmedSerial: number
  readonly confirmedMsAgo: number | null
  /** The kind of the provider that the zone was published with; null: none yet. */
  readonly providerKind: string | null
}

export const MARKER_LABEL = '_allocation-serial'
const MARKER_VALUE = /^"v=1 installation=([0-9a-f-]{36}) serial=(\d{1,15})"$/

/** No name of a pool can have this label, because it begins with an underscore. */
export const toMarkerName = (zone: string): string => `${MARKER_LABEL}.${zone}`

/** `ttl` in seconds. */
export const createMarkerRecord = (zone: string, { installation, serial }: ZoneMarker, ttl: number): RecordSet => ({
  name: toMarkerName(zone),
  type: 'TXT',
  ttl,
  values: [`"v=1 installation=${installation} serial=${serial}"`],
})

/**
 * The markers among the records of a zone. More than one only after a write that took effect late. A value in another
 * format proves nothing, and the next write replaces it.
 */
export const parseMarkers = (zone: string, records: readonly RecordSet[]): ZoneMarker[] => {
  const name = toMarkerName(zone)
  return records
    .filter(set => set.name === name && set.type === 'TXT')
    .flatMap(set => set.values)
    .flatMap(value => {
      const [, installation, serial] = MARKER_VALUE.exec(value) ?? []
      return installation === undefined ? [] : [{ installation, serial: Number(serial) }]
    })
}

/** The highest number among the markers; 0 if there is none. */
export const maxSerial = (markers: readonly ZoneMarker[]): number => Math.max(0, ...markers.map(({ serial }) => serial))

/**
 * Why the zone must not be written; null: it can be. `writes` was read after the markers: a number in the zone that this
 * database has committed is then never above its own.
 */
export const findStopCause = (markers: readonly ZoneMarker[], writes: ZoneWrites): StopCause | null => {
  if (writes.stoppedCause) return writes.stoppedCause
  if (markers.some(({ installation }) => installation !== writes.installation)) return 'other-installation'
  return maxSerial(markers) > writes.serial ? 'database-older' : null
}

/** A read is not older than this. A marker that is older was deleted, or the zone was restored: the next write replaces it. */
const MAX_READ_AGE_MS = 60_000

/** Whether a read with these markers shows the zone as it was before its last confirmed write. */
export const isStaleRead = (
  markers: readonly ZoneMarker[],
  { confirmedSerial, confirmedMsAgo }: Pick<ZoneWrites, 'confirmedSerial' | 'confirmedMsAgo'>,
): boolean => confirmedMsAgo !== null && confirmedMsAgo < MAX_READ_AGE_MS && maxSerial(markers) < confirmedSerial

/** Whether the zone was published with this kind of provider, or not yet. */
export const isOwnProvider = ({ providerKind }: ZoneWrites, kind: string): boolean =>
  providerKind === null || providerKind === kind

/** Whether the zone lacks the marker of the last write: it was deleted or restored, or an earlier write took effect late. */
export const isMarkerOutdated = (markers: readonly ZoneMarker[], { serial }: ZoneWrites): boolean =>
  serial === 0 || markers.length !== 1 || maxSerial(markers) < serial

const STOP_REASONS: Readonly<Record<StopCause, string>> = {
  'database-older': 'the database is older than the last write to it',
  'other-installation': 'another database wrote it last',
  imported: 'the database was imported',
}

/** For clients and operators. */
export const toStopReason = (zone: string, cause: StopCause): string =>
  `Nothing is written to the zone ${zone}: ${STOP_REASONS[cause]}. An operator must resume it (POST /api/v1/pool/${zone}/resume).`

interface NamedRecord {
  readonly name: string
}

/** Whether this is the record in which the allocation API numbers its writes of a zone. */
export const isZoneMarker = ({ name }: NamedRecord): boolean => name.startsWith('_allocation-serial.')

/** The records of a zone that tests compare. */
export const withoutZoneMarker = <Entry extends NamedRecord>(records: readonly Entry[]): Entry[] =>
  records.filter(record => !isZoneMarker(record))

/**
 * One RRset (RFC 2181 section 5): every record of one owner name and type.
 * `name` is absolute, lower case, without the trailing dot; it may begin with `*` (RFC 4592).
 * `ttl` is in seconds (RFC 2181 section 8). `values` are in presentation format, sorted, without duplicates.
 */
export interface RecordSet {
  readonly name: string
  readonly type: string
  readonly ttl: number
  readonly values: readonly string[]
}

/** `dropsUnserved`: also the records of the same name and type that the provider stores without serving them. */
export type RecordChange =
  | { readonly kind: 'upsert'; readonly set: RecordSet; readonly dropsUnserved?: true }
  | { readonly kind: 'delete'; readonly name: string; readonly type: string; readonly dropsUnserved?: true }

export const recordKey = (record: { name: string; type: string }): string => `${record.name} ${record.type}`

export const sameValues = (a: RecordSet, b: RecordSet): boolean =>
  a.values.length === b.values.length && a.values.every((value, i) => value === b.values[i])

export const sameRecordSet = (a: RecordSet, b: RecordSet): boolean =>
  recordKey(a) === recordKey(b) && a.ttl === b.ttl && sameValues(a, b)

/** The owner name that a change is about. */
export const toOwnerName = (change: RecordChange): string => (change.kind === 'upsert' ? change.set.name : change.name)

/** The key of the record set that a change is about. */
export const changeKey = (change: RecordChange): string => recordKey(change.kind === 'upsert' ? change.set : change)

/**
 * Whether `name` is `owner` or a name below it: whole labels, so `xacme.pool` is not below `acme.pool`. Nor is
 * `x\.acme.pool`, whose first label contains a dot (RFC 1035 section 5.1).
 */
export const isAtOrBelow = (name: string, owner: string): boolean => {
  if (name === owner) return true
  if (!name.endsWith(`.${owner}`)) return false
  const [backslashes = ''] = /\\*$/.exec(name.slice(0, -owner.length - 1)) ?? []
  return backslashes.length % 2 === 0
}

export interface RecordTemplate {
  /** Names relative to the allocated name: `@` is the name itself, `*` its wildcard. */
  readonly names: readonly string[]
  /** Seconds. */
  readonly ttl: number
}

/** The records an active name must have: one A record for each name of the template, all to `address` (IPv4). */
export const createRecords = (fqdn: string, address: string, template: RecordTemplate): RecordSet[] =>
  template.names.map(relative => ({
    name: relative === '@' ? fqdn : `${relative}.${fqdn}`,
    type: 'A',
    ttl: template.ttl,
    values: [address],
  }))

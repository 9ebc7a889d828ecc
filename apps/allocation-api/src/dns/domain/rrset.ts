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

/** `name` and the names above it, up to `top`. */
export const namesUpTo = (name: string, top: string): string[] =>
  name.split('.').flatMap((_, i, labels) => {
    const above = labels.slice(i).join('.')
    return isAtOrBelow(above, top) ? [above] : []
  })

/**
 * Whether a record set of `zone` hides every name of a pool in it: a delegation (RFC 1034 section 4.2.1), which the NS
 * records of the apex are not, or a DNAME (RFC 6672 section 2.4). A CNAME hides nothing below it.
 */
export const hidesPool = ({ name, type }: Pick<RecordSet, 'name' | 'type'>, pool: string, zone: string): boolean =>
  (type === 'DNAME' || (type === 'NS' && name !== zone)) && isAtOrBelow(pool, name) && isAtOrBelow(name, zone)

/** Whether a name is one of `names`, or at or below one of `branches`. Its time does not depend on how many these are. */
export const createNameFilter = ({
  names,
  branches,
}: {
  readonly names: readonly string[]
  readonly branches: readonly string[]
}): ((name: string) => boolean) => {
  const exact = new Set([...names, ...branches])
  const tops = new Set(branches)
  return name => {
    if (exact.has(name)) return true
    if (tops.size === 0) return false
    for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
      const above = name.slice(dot + 1)
      if (tops.has(above) && isAtOrBelow(name, above)) return true
    }
    return false
  }
}

/** `sets` with one set for each name and type, which has the values of all and the lowest TTL (RFC 2181 section 5.2). */
export const mergeRecordSets = (sets: readonly RecordSet[]): RecordSet[] =>
  Array.from(Map.groupBy(sets, recordKey).values()).flatMap(same => {
    const [first, ...others] = same
    if (!first || others.length === 0) return first ? [first] : []
    const values = Array.from(new Set(same.flatMap(set => set.values))).sort()
    return [{ ...first, ttl: Math.min(...same.map(set => set.ttl)), values }]
  })

/** Every change of one owner name. They are applied or rejected as a unit. */
export interface OwnerChanges {
  readonly name: string
  readonly changes: readonly RecordChange[]
}

/**
 * Groups changes by owner name. A name with a change that `validate` rejects is in `rejected`, with the reason. If there
 * are several changes to one record set, the last counts. Deletions first: a provider that applies in order then never
 * has a CNAME beside the records that replace it. Only the owner of the first change comes before them.
 */
export const groupByOwner = (
  changes: readonly RecordChange[],
  validate: (change: RecordChange) => string | undefined,
) => {
  const rejected = new Map<string, string>()
  for (const change of changes) {
    const reason = validate(change)
    if (reason !== undefined) rejected.set(toOwnerName(change), reason)
  }
  const last = [...new Map(changes.map(change => [changeKey(change), change])).values()]
  const wanted = last.filter(change => !rejected.has(toOwnerName(change)))
  const rank = (change: RecordChange) =>
    Number(change.kind === 'upsert') - 2 * Number(changes[0] && toOwnerName(change) === toOwnerName(changes[0]))
  const deletionsFirst = wanted.toSorted((a, b) => rank(a) - rank(b))
  const owners = Array.from(
    Map.groupBy(deletionsFirst, toOwnerName),
    ([name, own]): OwnerChanges => ({ name, changes: own }),
  )
  return { owners, rejected }
}

/** A rejected name is never also reported as skipped. `full`: those of `rejected` for which the zone has no room. */
export const toApplyResult = (
  rejected: ReadonlyMap<string, string>,
  skipped: readonly string[],
  full: ReadonlySet<string> = new Set(),
) => {
  const left = skipped.filter(name => !rejected.has(name))
  const toRejection = ([name, reason]: [string, string]) =>
    full.has(name) ? { name, reason, isZoneFull: true as const } : { name, reason }
  const rejections = Array.from(rejected, toRejection)
  return { kind: 'applied' as const, rejected: rejections, ...(left.length > 0 ? { skipped: left } : {}) }
}

import {
  isAtOrBelow,
  type RecordChange,
  type RecordSet,
  recordKey,
  sameRecordSet,
  sameValues,
} from '../../dns/domain/rrset.ts'

export interface OwnedKey {
  readonly name: string
  readonly type: string
}

/** One allocated name: what it must have, and what may be at the provider because we wrote it. */
export interface DesiredName {
  readonly subdomain: string
  readonly desired: readonly RecordSet[]
  /** Record sets that the provider was seen to take: ours, whatever somebody has made of them since. */
  readonly owned: readonly OwnedKey[]
  /** Were desired once. They may be there, or turn up again, as they were: an order that was given up can take effect late. */
  readonly previous: readonly RecordSet[]
  /** An earlier write was not confirmed: it may still take effect, whatever the provider shows now. */
  readonly hasInFlightWrite: boolean
}

export interface PlanOptions {
  readonly zone: string
  /** The provider has one TTL for all records of a zone: what was asked for is not compared. */
  readonly hasZoneTtl: boolean
}

export type Plan =
  | { readonly kind: 'changes'; readonly changes: readonly RecordChange[] }
  /** Somebody else's record stands in the way; why, for a person who can do something about it. */
  | { readonly kind: 'conflict'; readonly reason: string }

/** What a provider has, to be looked up. */
export interface CurrentRecords {
  readonly byKey: ReadonlyMap<string, RecordSet>
  readonly byName: ReadonlyMap<string, readonly RecordSet[]>
}

export const indexRecords = (records: readonly RecordSet[]): CurrentRecords => ({
  byKey: new Map(records.map(set => [recordKey(set), set])),
  byName: Map.groupBy(records, set => set.name),
})

/** `name` and the names above it, up to `top`. */
const namesUpTo = (name: string, top: string): string[] =>
  name.split('.').flatMap((_, i, labels) => {
    const above = labels.slice(i).join('.')
    return isAtOrBelow(above, top) ? [above] : []
  })

/** Whether `wanted`, another one than `present`, could not be there or would not be seen as long as `present` is. */
const blocks = (present: RecordSet, wanted: RecordSet): boolean => {
  // A zone cut: what stands at and below it is answered by others (RFC 1034 section 4.2.1).
  if (present.type === 'NS') return true
  // RFC 6672 section 2.4: nothing below a DNAME.
  if (present.name !== wanted.name) return present.type === 'DNAME'
  // RFC 1034 section 3.6.2: a CNAME stands alone at its name.
  if (present.type === 'CNAME' || wanted.type === 'CNAME') return true
  return present.type === wanted.type
}

/**
 * Desired minus current, for one name. Only record sets that are ours are changed or deleted; a foreign one where we
 * need a name sets this one aside and no other. A foreign set equal to the desired one is taken as ours: it is what a
 * database restored to an older day finds of its own writing.
 *
 * After a write that was not confirmed, all is said again, present or not: a provider that refuses what was planned on
 * an older state then refuses the late one, and one that does not has the newer order behind it.
 */
export const planName = (
  current: CurrentRecords,
  { subdomain, desired, owned, previous, hasInFlightWrite }: DesiredName,
  { zone, hasZoneTtl }: PlanOptions,
): Plan => {
  const ours = new Set(owned.map(recordKey))
  const wanted = new Set(desired.map(recordKey))
  const maybeWritten = hasInFlightWrite ? [...previous, ...desired] : previous
  const isOurs = (set: RecordSet) =>
    ours.has(recordKey(set)) || maybeWritten.some(one => recordKey(one) === recordKey(set) && sameValues(one, set))
  const isAsDesired = (present: RecordSet, set: RecordSet) =>
    hasZoneTtl ? recordKey(present) === recordKey(set) && sameValues(present, set) : sameRecordSet(present, set)

  const obstacle = desired
    .flatMap(set =>
      namesUpTo(set.name, `${subdomain}.${zone}`)
        .flatMap(name => current.byName.get(name) ?? [])
        .filter(present => blocks(present, set) && !isAsDesired(present, set)),
    )
    .find(present => !isOurs(present))
  if (obstacle) {
    const { name, type } = obstacle
    return {
      kind: 'conflict',
      reason: `A record of type ${type} that this service did not write stands at ${name}. Remove it there, or release this name.`,
    }
  }

  const changes: RecordChange[] = []
  // Deletions first: a provider that applies in order then never holds a CNAME beside another type.
  const unwanted = new Map([...owned, ...previous].map(({ name, type }) => [recordKey({ name, type }), { name, type }]))
  for (const [key, { name, type }] of unwanted) {
    const present = current.byKey.get(key)
    if (!wanted.has(key) && (present ? isOurs(present) : hasInFlightWrite)) changes.push({ kind: 'delete', name, type })
  }
  for (const set of desired) {
    const present = current.byKey.get(recordKey(set))
    if (hasInFlightWrite || !present || !isAsDesired(present, set)) changes.push({ kind: 'upsert', set })
  }
  return { kind: 'changes', changes }
}

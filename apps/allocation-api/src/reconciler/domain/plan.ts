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

/** The desired records of a name, and the records that the provider may have because this service wrote them. */
export interface DesiredName {
  readonly subdomain: string
  readonly desired: readonly RecordSet[]
  /** Record sets that the provider accepted. The service owns them even if another writer has edited them. */
  readonly owned: readonly OwnedKey[]
  /** Desired earlier. They may exist, or reappear with exactly these values: a timed-out write can take effect late. */
  readonly previous: readonly RecordSet[]
  /** An earlier write was not confirmed: it may still take effect, whatever the provider shows now. */
  readonly hasInFlightWrite: boolean
}

export interface PlanOptions {
  readonly zone: string
  /** The provider has one TTL for all records of a zone, so the desired TTL is not compared. */
  readonly hasZoneTtl: boolean
}

export type Plan =
  | { readonly kind: 'changes'; readonly changes: readonly RecordChange[] }
  /** A foreign record is in the way. `reason` has instructions for an operator. */
  | { readonly kind: 'conflict'; readonly reason: string }

/** The records that the provider has, indexed. */
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

/** Whether `wanted`, which differs from `present`, could not exist or would not be served as long as `present` exists. */
const conflictsWith = (present: RecordSet, wanted: RecordSet): boolean => {
  // A zone cut: other servers answer for the names at and below it (RFC 1034 section 4.2.1).
  if (present.type === 'NS') return true
  // RFC 6672 section 2.4: nothing below a DNAME.
  if (present.name !== wanted.name) return present.type === 'DNAME'
  // RFC 1034 section 3.6.2: a CNAME is the only record at its name.
  if (present.type === 'CNAME' || wanted.type === 'CNAME') return true
  return present.type === wanted.type
}

/**
 * Desired minus current, for one name. Only record sets that the service owns are changed or deleted. A foreign record
 * set in the way is a conflict for this name only. A foreign set equal to the desired one is adopted: after a restore
 * from an older backup, the database finds records that this service wrote.
 *
 * After a write that was not confirmed, the plan repeats every change, whether or not the provider shows it: a provider
 * that rejects writes planned on an older state then rejects the late one, and any other applies the newer write last.
 */
export const planName = (
  current: CurrentRecords,
  { subdomain, desired, owned, previous, hasInFlightWrite }: DesiredName,
  { zone, hasZoneTtl }: PlanOptions,
): Plan => {
  const ownedKeys = new Set(owned.map(recordKey))
  const desiredKeys = new Set(desired.map(recordKey))
  const maybeWritten = hasInFlightWrite ? [...previous, ...desired] : previous
  const isOwned = (set: RecordSet) =>
    ownedKeys.has(recordKey(set)) ||
    maybeWritten.some(written => recordKey(written) === recordKey(set) && sameValues(written, set))
  const isAsDesired = (present: RecordSet, set: RecordSet) =>
    hasZoneTtl ? recordKey(present) === recordKey(set) && sameValues(present, set) : sameRecordSet(present, set)

  const conflict = desired
    .flatMap(set =>
      namesUpTo(set.name, `${subdomain}.${zone}`)
        .flatMap(name => current.byName.get(name) ?? [])
        .filter(present => conflictsWith(present, set) && !isAsDesired(present, set)),
    )
    .find(present => !isOwned(present))
  if (conflict) {
    const { name, type } = conflict
    return {
      kind: 'conflict',
      reason: `A record of type ${type} that is not managed by this service exists at ${name}. Delete it, or release this name.`,
    }
  }

  const changes: RecordChange[] = []
  // Deletions first: a provider that applies in order then never has a CNAME beside another type.
  const unwanted = new Map([...owned, ...previous].map(({ name, type }) => [recordKey({ name, type }), { name, type }]))
  for (const [key, { name, type }] of unwanted) {
    const present = current.byKey.get(key)
    if (!desiredKeys.has(key) && (present ? isOwned(present) : hasInFlightWrite))
      changes.push({ kind: 'delete', name, type })
  }
  for (const set of desired) {
    const present = current.byKey.get(recordKey(set))
    if (hasInFlightWrite || !present || !isAsDesired(present, set)) changes.push({ kind: 'upsert', set })
  }
  return { kind: 'changes', changes }
}

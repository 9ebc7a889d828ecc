import type { PlannedChange, ZoneDifference } from '@pool/contract'

/** A record set (RFC 2181 section 5). */
export interface RecordSet {
  readonly name: string
  readonly type: string
  readonly ttl?: number | undefined
  readonly data: readonly string[]
}

export type DiffKind = 'same' | 'added' | 'removed' | 'changed'

/** A record set on both sides. `desired` or `found` is absent if that side does not have it. */
export interface RecordDiff {
  readonly kind: DiffKind
  readonly name: string
  readonly type: string
  readonly desired?: RecordSet
  readonly found?: RecordSet
  /** Another writer created the record, and nothing changes it. */
  readonly isForeign: boolean
}

const toKey = ({ name, type }: { readonly name: string; readonly type: string }): string => `${name} ${type}`

const toText = ({ ttl, data }: RecordSet): string => JSON.stringify([ttl, [...data].sort()])

const compareKeys = (a: RecordDiff, b: RecordDiff): number => (toKey(a) < toKey(b) ? -1 : 1)

/**
 * Compares desired with found record sets, by name and type. A found record set that is not desired is `removed` if one of
 * the planned changes deletes it, and otherwise stays, as one of another writer.
 */
export const diffRecords = (
  desired: readonly RecordSet[],
  found: readonly RecordSet[],
  changes: readonly PlannedChange[],
): readonly RecordDiff[] => {
  const foundByKey = new Map(found.map(record => [toKey(record), record]))
  const desiredKeys = new Set(desired.map(toKey))
  const deleted = new Set(changes.filter(({ action }) => action === 'delete').map(toKey))
  const wanted = desired.map((record): RecordDiff => {
    const { name, type } = record
    const other = foundByKey.get(toKey(record))
    if (other === undefined) return { kind: 'added', name, type, desired: record, isForeign: false }
    const kind = toText(record) === toText(other) ? 'same' : 'changed'
    return { kind, name, type, desired: record, found: other, isForeign: false }
  })
  const others = found
    .filter(record => !desiredKeys.has(toKey(record)))
    .map((record): RecordDiff => {
      const { name, type } = record
      const isDeleted = deleted.has(toKey(record))
      return { kind: isDeleted ? 'removed' : 'same', name, type, found: record, isForeign: !isDeleted }
    })
  return [...wanted, ...others].sort(compareKeys)
}

/** A row of a planned change to a zone: what is added or removed. */
export interface PlanRow {
  readonly sign: '+' | '−' | '~'
  readonly kind: 'added' | 'removed' | 'changed'
  readonly name: string
  readonly type: string
  /** The value that is written or deleted; empty if it is not known. */
  readonly text: string
  /** With `changed`: the value that is replaced, if it is known. */
  readonly before?: string
}

const formatValue = ({ ttl, data }: Pick<RecordSet, 'ttl' | 'data'>): string =>
  `${data.join(', ')}${ttl === undefined ? '' : `, TTL ${ttl} s`}`

/** The rows of changes to a zone. `found`: record sets of the zone, to show what is replaced or deleted. */
export const toPlanRows = (changes: readonly PlannedChange[], found: readonly RecordSet[] = []): readonly PlanRow[] => {
  const foundByKey = new Map(found.map(record => [toKey(record), formatValue(record)]))
  return changes.map((change): PlanRow => {
    const { action, name, type, ttl, values = [] } = change
    const before = foundByKey.get(toKey(change))
    if (action === 'delete') return { sign: '−', kind: 'removed', name, type, text: before ?? '' }
    const text = formatValue({ ttl, data: values })
    return before === undefined
      ? { sign: '+', kind: 'added', name, type, text }
      : { sign: '~', kind: 'changed', name, type, text, before }
  })
}

const actionTexts: Readonly<Record<ZoneDifference['action'], string>> = {
  publish: 'the zone gets the address of the database',
  withdraw: 'the records are deleted',
  adopt: 'the name becomes active with the address of the zone',
  readdress: 'the name gets the address of the zone',
  release: 'the name becomes free',
}

const actionKinds = {
  publish: 'added',
  withdraw: 'removed',
  adopt: 'added',
  readdress: 'changed',
  release: 'removed',
} as const

const signs = { added: '+', removed: '−', changed: '~' } as const

/** The rows of the differences that a resume settles. */
export const toDifferenceRows = (differences: readonly ZoneDifference[]): readonly PlanRow[] =>
  differences.map(({ subdomain, databaseAddress = 'none', zoneAddress = 'none', action }) => {
    const kind = actionKinds[action]
    return {
      sign: signs[kind],
      kind,
      name: subdomain,
      type: action,
      text: `database ${databaseAddress}, zone ${zoneAddress}: ${actionTexts[action]}`,
    }
  })

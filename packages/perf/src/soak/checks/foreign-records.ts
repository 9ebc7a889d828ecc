import { type RecordSet, recordKey } from 'allocation-api/src/dns/domain/rrset.ts'
import type { ReplayRow } from './history.ts'
import type { Span } from './operations.ts'

/** A record set that the soak wrote at or below a name of the pool, as another writer. No other has the same values. */
export interface ForeignRecord extends Span {
  readonly subdomain: string
  readonly set: RecordSet
  /** It replaced a record set of the service, which restores its own. */
  readonly isOverwrite: boolean
}

/** What must become of a foreign record set. `either`: a release or a publication was in progress when it was written. */
type Fate = 'stays' | 'goes' | 'either'

const isRelease = ({ event, from }: ReplayRow): boolean => event === 'released' && from === 'active'

/** A release removes what exists, and so does the first publication for a holder after the first one. */
const toFate = ({ start, end }: Span, rows: readonly ReplayRow[]): Fate => {
  const firstRelease = rows.findIndex(isRelease)
  const isPurge = (row: ReplayRow, index: number) =>
    isRelease(row) || (row.event === 'committed' && firstRelease >= 0 && firstRelease < index)
  if (rows.some((row, index) => isPurge(row, index) && row.at > end)) return 'goes'
  if (rows.some((row, index) => isPurge(row, index) && row.at >= start)) return 'either'
  const before = rows.filter(({ at }) => at < start)
  const released = before.findLastIndex(isRelease)
  if (released < 0) return 'stays'
  const committed = before.findLastIndex(({ event }) => event === 'committed')
  // Without a withdrawal in between, the publication can be that of the former holder, recorded late.
  const isWithdrawn = before.slice(released, Math.max(released, committed)).some(({ event }) => event === 'withdrawn')
  const isPublished = before.slice(committed).some(({ event }) => event === 'published')
  return committed > released && isWithdrawn && isPublished ? 'stays' : 'either'
}

const formatKey = ({ name, type, ttl, values }: RecordSet): string =>
  `${recordKey({ name, type })} ${ttl} ${values.toSorted()}`

export interface ForeignRecordsCheck {
  /** The foreign record sets that the zone must have: those that the history does not list as deleted. */
  readonly present: readonly RecordSet[]
  /** Record sets of which nothing is known: the write that was to make them had no response. */
  readonly unknown: readonly RecordSet[]
  readonly violations: readonly string[]
}

/**
 * Compares what the soak wrote with the deleted records that the history lists. `history` has the rows of all names with
 * foreign records and all rows with deleted records, oldest first. After convergence there must be no violations.
 */
export const checkForeignRecords = (
  written: readonly ForeignRecord[],
  history: readonly ReplayRow[],
): ForeignRecordsCheck => {
  const rows = Map.groupBy(history, ({ subdomain }) => subdomain)
  const deletions = Map.groupBy(
    history.flatMap(({ subdomain, at, deletedRecords }) =>
      (deletedRecords ?? []).map(({ name, type, ttl, data }) => {
        const key = formatKey({ name, type, ttl, values: data })
        return { subdomain, at, key }
      }),
    ),
    ({ key }) => key,
  )
  const known = new Set(written.map(({ set }) => formatKey(set)))
  const violations = [...deletions].flatMap(([key, [deletion, ...others]]) => [
    ...(known.has(key) ? [] : [`the history of ${deletion?.subdomain} lists ${key}, which no other writer wrote`]),
    ...(others.length > 0 ? [`the history lists ${key} ${others.length + 1} times`] : []),
  ])
  const present: RecordSet[] = []
  for (const record of written) {
    const { subdomain, set, start, end, isOverwrite } = record
    const key = formatKey(set)
    const [deletion] = deletions.get(key) ?? []
    const fate = toFate(record, rows.get(subdomain) ?? [])
    if (deletion && (deletion.subdomain !== subdomain || deletion.at < start))
      violations.push(`the history of ${deletion.subdomain} lists ${key} before it was written, or for another name`)
    if (deletion && fate === 'stays') violations.push(`deleted although its name was not released: ${key}`)
    if (isOverwrite || !Number.isFinite(end)) continue
    if (!deletion && fate === 'goes') violations.push(`not deleted after the release of its name: ${key}`)
    if (!deletion) present.push(set)
  }
  const unknown = written.filter(({ end }) => !Number.isFinite(end)).map(({ set }) => set)
  return { present, unknown, violations }
}

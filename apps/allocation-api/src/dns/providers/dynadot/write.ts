import { chunkBySize } from '../../../lib/chunk.ts'
import { type BatchResult, bisect } from '../../bisect.ts'
import type { ApplyResult, Unavailable } from '../../domain/result.ts'
import type { RecordChange } from '../../domain/rrset.ts'
import { toApplyResult } from '../../group-changes.ts'
import { applyChanges, groupByName, type NameChanges } from './apply-changes.ts'
import { validateRecordSet } from './record.ts'
import type { DomainSettings } from './response.ts'

/** What became of one write of a domain's whole set: it stands, or nothing of it does and the set is to blame. */
export type WriteResult =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'rejected'; readonly reason: string }
  | Unavailable

/** Owner names sent as one. Of so many that are all rejected, halving finds a faulty one in eight writes. */
const MAX_NAMES = 128

/** Those eight, and one that tells whose fault it is. An apply has 10 s for all; a write takes 0.3 to 1 s. */
const MAX_WRITES = 9

/**
 * Brings a domain from `before` to what `changes` make of it: in one write if Dynadot takes it, else in as many as are
 * needed to find the names that it does not take, up to a bound. Each write holds everything that was taken so far.
 *
 * Where Dynadot takes nothing at all, the set goes out once as it was: if even that is rejected, somebody else's record
 * is to blame and ours are not, so it is the zone that is unavailable. A set that was empty needs no such test.
 */
export const writeChanges = async (
  zone: string,
  before: DomainSettings,
  changes: readonly RecordChange[],
  write: (settings: DomainSettings) => Promise<WriteResult>,
): Promise<ApplyResult> => {
  const names = groupByName(before.records, changes, zone)
  const ttl =
    before.ttl ??
    names
      .flatMap(name => name.changes)
      .flatMap(change => (change.kind === 'upsert' ? [change.set] : []))
      .find(set => validateRecordSet(set, zone) === undefined)?.ttl
  const rejected = new Map<string, string>()
  const skipped = new Set(names.map(({ name }) => name))
  let records = before.records
  let writes = 0
  /** It is known that Dynadot takes the set with what is in `records` now. */
  let isSound = before.records.length === 0

  const attempt = async (batch: readonly NameChanges[]): Promise<BatchResult<NameChanges, Unavailable | undefined>> => {
    const after = applyChanges(
      records,
      batch.flatMap(name => name.changes),
      zone,
    )
    if (after.isChanged) {
      if (writes === (isSound ? MAX_WRITES : MAX_WRITES - 1)) return { kind: 'failed', failure: undefined }
      writes += 1
      const result = await write({ ...before, ttl, records: after.records })
      if (result.kind === 'unavailable') return { kind: 'failed', failure: result }
      if (result.kind === 'rejected') {
        const [only] = batch
        if (only && batch.length === 1) {
          rejected.set(only.name, result.reason)
          skipped.delete(only.name)
        }
        return result
      }
      isSound = true
      records = after.records
    }
    for (const [name, reason] of after.rejected) rejected.set(name, reason)
    for (const { name } of batch) skipped.delete(name)
    return { kind: 'accepted' }
  }

  const result = await bisect(
    chunkBySize(names, () => 1, MAX_NAMES),
    attempt,
    { maxRejections: MAX_WRITES },
  )
  if (result.kind === 'failed' && result.failure) return result.failure
  if (writes > 0 && !isSound) {
    const asItWas = await write(before)
    if (asItWas.kind === 'unavailable') return asItWas
    if (asItWas.kind === 'rejected') {
      const reason = `Dynadot does not take back the records that ${zone} has already: ${asItWas.reason}`
      return { kind: 'unavailable', scope: 'zone', reason }
    }
  }
  return toApplyResult(rejected, Array.from(skipped))
}

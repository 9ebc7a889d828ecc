import { chunkBySize } from '../../../lib/chunk.ts'
import { type BatchResult, bisect } from '../../bisect.ts'
import type { ApplyResult, Unavailable } from '../../domain/result.ts'
import { type RecordChange, toApplyResult } from '../../domain/rrset.ts'
import { applyChanges, groupByName, type NameChanges } from './apply-changes.ts'
import { validateRecordSet } from './record.ts'
import type { DomainSettings } from './response.ts'

/** The result of writing a domain's whole record set: all of it is stored, or the set was rejected and none is. */
export type WriteResult =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'rejected'; readonly reason: string }
  | Unavailable

/** Owner names in one write. If all are faulty, bisection of this many finds one in eight writes. */
const MAX_NAMES = 128

/** These eight, and one to check the original set. An apply has 10 s in total; a write takes 0.3 to 1 s. */
const MAX_WRITES = 9

/**
 * Applies `changes` to the settings `before`: in one write if Dynadot accepts it, otherwise in as many as bisection
 * needs to find the rejected names, up to MAX_WRITES. Each write contains everything accepted so far.
 *
 * If Dynadot accepts no write, the original set is written once more. If even that is rejected, a foreign record is at
 * fault, so the zone is unavailable and no name is rejected. An empty original set needs no such check.
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
  /** Whether Dynadot is known to accept the set in `records`. */
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
    const original = await write(before)
    if (original.kind === 'unavailable') return original
    if (original.kind === 'rejected') {
      const reason = `Dynadot rejects the existing records of ${zone}: ${original.reason}`
      return { kind: 'unavailable', scope: 'zone', reason }
    }
  }
  return toApplyResult(rejected, Array.from(skipped))
}

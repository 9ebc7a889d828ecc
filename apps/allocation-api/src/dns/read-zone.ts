import type { ReadResult, Unavailable, WantedRecords, ZonePart } from './domain/result.ts'
import { createNameFilter, mergeRecordSets, type RecordSet } from './domain/rrset.ts'

/** Record sets of a zone that a read returns completely, whatever was wanted. */
export const MAX_FULL_READ = 10_000

/**
 * The wanted record sets of a zone that is read completely. A small zone is returned as a whole, so that changes made
 * during the read can use it. Of a larger one, only the wanted record sets are ever in memory.
 */
export const collectWanted = async (
  parts: AsyncIterable<ZonePart | Unavailable>,
  wanted: WantedRecords,
  onPart: () => void = () => {},
): Promise<ReadResult> => {
  const isWanted = createNameFilter(wanted)
  const onlyWanted = (sets: readonly RecordSet[]) => sets.filter(({ name }) => isWanted(name))
  let records: RecordSet[] = []
  let unserved: RecordSet[] = []
  let isFull = true
  for await (const part of parts) {
    if (part.kind === 'unavailable') return part
    onPart()
    if (part.kind === 'restart') {
      records = []
      unserved = []
      isFull = true
      continue
    }
    records.push(...(isFull ? part.records : onlyWanted(part.records)))
    unserved.push(...(isFull ? (part.unserved ?? []) : onlyWanted(part.unserved ?? [])))
    if (isFull && records.length + unserved.length > MAX_FULL_READ) {
      isFull = false
      records = onlyWanted(records)
      unserved = onlyWanted(unserved)
    }
  }
  return {
    kind: 'read',
    records: mergeRecordSets(records),
    ...(unserved.length > 0 ? { unserved: mergeRecordSets(unserved) } : {}),
    ...(isFull ? { isFullZone: true } : {}),
  }
}

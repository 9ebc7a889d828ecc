import { type RecordChange, type RecordSet, recordKey, sameRecordSet } from '../../dns/domain/rrset.ts'

/** The changes that make `desired` equal to `wanted`, whatever their order: none if they have the same record sets. */
export const toTemplateChanges = (desired: readonly RecordSet[], wanted: readonly RecordSet[]): RecordChange[] => {
  const wantedKeys = new Set(wanted.map(recordKey))
  const deletions = desired
    .filter(set => !wantedKeys.has(recordKey(set)))
    .map(({ name, type }): RecordChange => ({ kind: 'delete', name, type }))
  const upserts = wanted
    .filter(set => !desired.some(present => sameRecordSet(present, set)))
    .map((set): RecordChange => ({ kind: 'upsert', set }))
  return [...deletions, ...upserts]
}

import type { NameAction } from '@pool/contract'
import { type RecordChange, type RecordSet, recordKey, sameRecordSet } from '../../dns/domain/rrset.ts'
import type { DesiredName } from './name.ts'

/** The name as it would be after the action, for the plan of its records. `records`: those of the new address. */
export const applyAction = (
  name: DesiredName,
  action: Exclude<NameAction, 'lift-cool-off'>,
  records: readonly RecordSet[],
): DesiredName => ({
  ...name,
  desired: action === 'release' ? [] : records,
  previous: [...name.previous, ...name.desired],
  isPurged: name.isPurged || action === 'release',
})

/**
 * The changes from the records of a name to `wanted`, whatever their order, as far as the database knows: of the records
 * that this service wrote, not of those in the zone. None if they are the same.
 */
export const toRecordChanges = (
  { owned, desired }: Pick<DesiredName, 'owned' | 'desired'>,
  wanted: readonly RecordSet[],
): RecordChange[] => {
  const kept = new Set(wanted.map(recordKey))
  const written = new Map([...owned, ...desired].map(({ name, type }) => [recordKey({ name, type }), { name, type }]))
  const deletions = [...written.values()].filter(key => !kept.has(recordKey(key)))
  const isSame = (set: RecordSet) => desired.some(other => sameRecordSet(other, set))
  return [
    ...deletions.map(({ name, type }): RecordChange => ({ kind: 'delete', name, type })),
    ...wanted.filter(set => !isSame(set)).map((set): RecordChange => ({ kind: 'upsert', set })),
  ]
}

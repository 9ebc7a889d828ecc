import type { NameAction } from '@pool/contract'
import type { RecordChange, RecordSet } from '../../dns/domain/rrset.ts'
import { recordKey, sameRecordSet } from '../../dns/domain/rrset.ts'
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

/** What the action changes as far as the database knows: the records that this service wrote, not those in the zone. */
export const planWithoutZone = (before: DesiredName, after: DesiredName): readonly RecordChange[] => {
  const kept = new Set(after.desired.map(recordKey))
  const written = new Map(
    [...before.owned, ...before.desired].map(({ name, type }) => [recordKey({ name, type }), { name, type }]),
  )
  const deletions = [...written.values()].filter(key => !kept.has(recordKey(key)))
  const isSame = (set: RecordSet) => before.desired.some(other => sameRecordSet(other, set))
  return [
    ...deletions.map(({ name, type }): RecordChange => ({ kind: 'delete', name, type })),
    ...after.desired.filter(set => !isSame(set)).map((set): RecordChange => ({ kind: 'upsert', set })),
  ]
}

import { type RecordSet, recordKey, sameRecordSet } from 'allocation-api/src/dns/domain/rrset.ts'
import { desiredZone } from '../checks/zone.ts'
import { type SoakEnvironment, template } from '../environment/stage.ts'
import { ZONE } from '../environment/zone.ts'
import { readTable } from '../observe/database.ts'

const EDITED = 3
const WRONG = '198.51.100.99'

/** Removes and changes records of active names past the service; returns whether all of it has been put right since. */
export const editRecords = async ({ sql, zone }: SoakEnvironment): Promise<() => Promise<boolean>> => {
  const records = (await zone.records()).filter(({ type, values }) => type === 'A' && values[0]?.startsWith('10.'))
  const edited: readonly RecordSet[] = records.slice(0, EDITED)
  const [removed, ...changed] = edited
  await zone.edit({
    remove: removed ? [removed] : [],
    put: changed.map(set => ({ ...set, values: [WRONG] })),
  })
  return async () => {
    // What is desired may be another by now, or nothing.
    const desired = new Map(desiredZone(ZONE, await readTable(sql), template, []).map(set => [recordKey(set), set]))
    const present = new Map((await zone.records()).map(set => [recordKey(set), set]))
    return edited.every(set => {
      const [wants, has] = [desired.get(recordKey(set)), present.get(recordKey(set))]
      return wants && has ? sameRecordSet(wants, has) : wants === has
    })
  }
}

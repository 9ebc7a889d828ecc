import type { RecordSet } from 'allocation-api/src/dns/domain/rrset.ts'
import { createRecords, type RecordTemplate } from 'allocation-api/src/dns/domain/target.ts'
import type { TableRow } from './history.ts'

const formatRecordSet = ({ name, type, ttl, values }: RecordSet): string =>
  `${name} ${ttl} ${type} ${values.toSorted()}`

/** The records that the zone must have: those of the active names and the foreign ones. */
export const toDesiredZone = (
  zone: string,
  table: readonly TableRow[],
  template: RecordTemplate,
  foreign: readonly RecordSet[],
): RecordSet[] => [
  ...foreign,
  ...table.flatMap(({ subdomain, state, address }) =>
    state === 'active' ? createRecords(`${subdomain}.${zone}`, { loadBalancerIP: address ?? '' }, template) : [],
  ),
]

/** Empty: the zone is exactly as desired. */
export const findZoneDifferences = (present: readonly RecordSet[], desired: readonly RecordSet[]): string[] => {
  const actual = new Set(present.map(formatRecordSet))
  const expected = new Set(desired.map(formatRecordSet))
  return [
    ...[...expected].filter(text => !actual.has(text)).map(text => `missing in the zone: ${text}`),
    ...[...actual].filter(text => !expected.has(text)).map(text => `unexpected in the zone: ${text}`),
  ]
}

import { createRecords, type RecordSet, type RecordTemplate } from 'allocation-api/src/dns/domain/rrset.ts'
import type { TableRow } from './replay.ts'

const textOf = ({ name, type, ttl, values }: RecordSet): string => `${name} ${ttl} ${type} ${values.toSorted()}`

/** Every record that the zone must have: those of the active names, and those that others planted. */
export const desiredZone = (
  zone: string,
  table: readonly TableRow[],
  template: RecordTemplate,
  foreign: readonly RecordSet[],
): RecordSet[] => [
  ...foreign,
  ...table.flatMap(({ subdomain, state, address }) =>
    state === 'active' ? createRecords(`${subdomain}.${zone}`, address ?? '', template) : [],
  ),
]

/** Where a zone differs from what it must be; nothing: it is exactly that. */
export const zoneFaults = (present: readonly RecordSet[], desired: readonly RecordSet[]): string[] => {
  const has = new Set(present.map(textOf))
  const wants = new Set(desired.map(textOf))
  return [
    ...[...wants].filter(text => !has.has(text)).map(text => `the zone lacks ${text}`),
    ...[...has].filter(text => !wants.has(text)).map(text => `the zone has ${text}`),
  ]
}

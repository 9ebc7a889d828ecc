import { findHistoryErrors, type RecordHistoryEntry } from '@pool/test-kit/history-rules.ts'
import { type RecordSet, recordKey } from '../../../src/dns/domain/rrset.ts'
import type { DeletedRecord } from '../../../src/reconciler/domain/outcome.ts'
import type { ZoneModel } from './zone-model.ts'

export interface ActiveName {
  readonly subdomain: string
  readonly address: string
}

/** A row of `dns_names`. */
export interface QuiescentName {
  readonly subdomain: string
  readonly previous: readonly unknown[]
  readonly isApplied: boolean
  readonly failure: string | null
}

export interface QuiescentState {
  /** The records at the provider. */
  readonly present: readonly RecordSet[]
  /** The active rows of `pool_allocations`. */
  readonly active: readonly ActiveName[]
  readonly rows: readonly QuiescentName[]
  /** The history of the zone, oldest first. */
  readonly history: readonly QuiescentHistoryEntry[]
}

export interface QuiescentHistoryEntry extends RecordHistoryEntry {
  readonly deleted: readonly DeletedRecord[] | null
}

/** The history lists every doomed record set, and no record set that this service wrote. */
const findListingErrors = (model: ZoneModel, history: readonly QuiescentHistoryEntry[]): string[] => {
  const format = ({ name, type, ttl, data }: DeletedRecord) => formatRecordSet({ name, type, ttl, values: data })
  const listed = history.flatMap(({ subdomain, deleted }) => (deleted ?? []).map(set => `${subdomain}: ${format(set)}`))
  const planted = new Set(model.planted.map(formatRecordSet))
  const missing = model.doomed
    .map(({ subdomain, set }) => `${subdomain}: ${formatRecordSet(set)}`)
    .filter(text => !listed.includes(text))
  const unplanted = listed.filter(text => !planted.has(text.slice(text.indexOf(': ') + 2)))
  return [
    ...missing.map(text => `deleted, but not in the history of ${text}`),
    ...unplanted.map(text => `in the history as deleted, but no other writer's, of ${text}`),
  ]
}

export const formatRecordSet = ({ name, type, ttl, values }: RecordSet): string => `${name} ${ttl} ${type} ${values}`

/** Returns what differs from the expected state after the last fault, when nothing is due. */
export const findViolations = (model: ZoneModel, { present, active, rows, history }: QuiescentState): string[] => {
  const violations = findListingErrors(model, history)
  const blocked = new Set(model.names.filter(name => model.isBlocked(name)).map(name => name.subdomain))
  const isBlockedName = (name: { subdomain: string }) => blocked.has(name.subdomain)

  // A blocked name may have records of any earlier version. Foreign records are compared all the same.
  const isIgnored = (set: RecordSet) => {
    const name = model.findName(recordKey(set))
    return name !== undefined && isBlockedName(name) && !model.foreign.has(recordKey(set))
  }
  const expected = [
    ...model.foreign.values(),
    ...active.filter(name => !isBlockedName(name)).flatMap(name => model.getRecords(name.subdomain, name.address)),
  ].map(formatRecordSet)
  const found = present.filter(set => !isIgnored(set)).map(formatRecordSet)
  for (const text of expected) if (!found.includes(text)) violations.push(`missing: ${text}`)
  for (const text of found) if (!expected.includes(text)) violations.push(`unexpected: ${text}`)

  const addresses = new Map(active.map(name => [name.subdomain, name.address]))
  for (const { subdomain, state, address } of model.names) {
    if (addresses.get(subdomain) !== (state === 'active' ? address : undefined))
      violations.push(`${subdomain} should be ${state} ${address}; the table has ${addresses.get(subdomain)}`)
    if (addresses.has(subdomain) && !rows.some(row => row.subdomain === subdomain))
      violations.push(`${subdomain} is active without desired records`)
    const nameHistory = history.filter(row => row.subdomain === subdomain)
    for (const text of findHistoryErrors(nameHistory, blocked.has(subdomain)))
      violations.push(`history of ${subdomain}: ${text}`)
  }
  for (const row of rows) {
    const { subdomain, isApplied, failure, previous } = row
    if (!addresses.has(subdomain)) violations.push(`${subdomain} was withdrawn, but its row was not deleted`)
    else if (isBlockedName(row) && failure !== 'foreign-record')
      violations.push(`${subdomain} is blocked, but its failure is ${failure}`)
    else if (!isBlockedName(row) && (!isApplied || failure !== null || previous.length > 0))
      violations.push(`${subdomain} is not quiescent: ${JSON.stringify(row)}`)
  }
  return violations
}

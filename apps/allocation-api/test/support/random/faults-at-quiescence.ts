import { findHistoryErrors, type RecordHistoryEntry } from '@pool/test-kit/history-rules.ts'
import { type RecordSet, recordKey } from '../../../src/dns/domain/rrset.ts'
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

export interface Rest {
  /** At the provider. */
  readonly present: readonly RecordSet[]
  /** In `pool_allocations`: what is desired. */
  readonly active: readonly ActiveName[]
  readonly rows: readonly QuiescentName[]
  /** Of the zone, oldest first. */
  readonly history: readonly RecordHistoryEntry[]
}

export const toText = ({ name, type, ttl, values }: RecordSet): string => `${name} ${ttl} ${type} ${values}`

/** What is not as it must be when nothing befalls the provider any more and nothing is left to do. */
export const findFaults = (model: ZoneModel, { present, active, rows, history }: Rest): string[] => {
  const faults: string[] = []
  const blocked = new Set(model.names.filter(name => model.isObstructed(name)).map(name => name.subdomain))
  const isBlocked = (name: { subdomain: string }) => blocked.has(name.subdomain)

  // Of a name that somebody blocks, what stands there may be of any day; somebody's records count all the same.
  const isLeft = (set: RecordSet) => {
    const name = model.nameOf(recordKey(set))
    return name !== undefined && isBlocked(name) && !model.foreign.has(recordKey(set))
  }
  const expected = [
    ...model.foreign.values(),
    ...active.filter(name => !isBlocked(name)).flatMap(name => model.recordsOf(name.subdomain, name.address)),
  ].map(toText)
  const found = present.filter(set => !isLeft(set)).map(toText)
  for (const text of expected) if (!found.includes(text)) faults.push(`missing: ${text}`)
  for (const text of found) if (!expected.includes(text)) faults.push(`too much: ${text}`)

  const addressOf = new Map(active.map(name => [name.subdomain, name.address]))
  for (const { subdomain, state, address } of model.names) {
    if (addressOf.get(subdomain) !== (state === 'active' ? address : undefined))
      faults.push(`${subdomain} is ${state} ${address}, and ${addressOf.get(subdomain)} in the table`)
    if (addressOf.has(subdomain) && !rows.some(row => row.subdomain === subdomain))
      faults.push(`${subdomain} is active and nothing is desired of it`)
    const itsHistory = history.filter(row => row.subdomain === subdomain)
    for (const text of findHistoryErrors(itsHistory, blocked.has(subdomain)))
      faults.push(`history of ${subdomain}: ${text}`)
  }
  for (const row of rows) {
    const { subdomain, isApplied, failure, previous } = row
    if (!addressOf.has(subdomain)) faults.push(`${subdomain} was withdrawn and is not forgotten`)
    else if (isBlocked(row) && failure !== 'foreign-record') faults.push(`${subdomain} is blocked, and ${failure}`)
    else if (!isBlocked(row) && (!isApplied || failure !== null || previous.length > 0))
      faults.push(`${subdomain} is not at rest: ${JSON.stringify(row)}`)
  }
  return faults
}

import type { NameOperation, Span } from './operations.ts'
import { groupOperations, type OwnershipInterval, toOwnershipIntervals } from './ownership.ts'

/** A response of the DNS server to a query for the address of a name. */
export interface AddressReading extends Span {
  readonly name: string
  /** Of the client that has the name. */
  readonly token: string
  readonly addresses: readonly string[]
}

/** A change of the records of a name that bypassed the service. */
export interface RecordEdit extends Span {
  readonly name: string
}

const isAddressOf = ({ commitment, updates }: OwnershipInterval, { addresses, end }: AddressReading): boolean =>
  addresses.length === 1 &&
  [...(commitment ? [commitment] : []), ...updates].some(
    ({ address, start }) => address === addresses[0] && start <= end,
  )

/**
 * Once the address of an active name is published, each response has an address that its client set. Checks the first
 * holders of names: a delayed write for an earlier holder can remove records until the next drift check. The same applies to
 * a name whose records were edited, until they are restored.
 */
export const findWrongAddresses = (
  readings: readonly AddressReading[],
  operations: readonly NameOperation[],
  edits: readonly RecordEdit[],
): string[] => {
  const operationsByName = groupOperations(operations)
  const editsByName = Map.groupBy(edits, ({ name }) => name)
  return [...Map.groupBy(readings, ({ token }) => token)].flatMap(([token, own]) => {
    const name = own[0]?.name ?? ''
    const nameOperations = operationsByName.get(name) ?? []
    const interval = toOwnershipIntervals(nameOperations).find(({ grant }) => grant.token === token)
    if (!interval) return []
    const { grant, from, to } = interval
    if (nameOperations.some(({ kind, start }) => kind === 'release' && start < grant.end)) return []
    let confirmedAt = Number.NEGATIVE_INFINITY
    return own
      .toSorted((a, b) => a.start - b.start)
      .flatMap(reading => {
        if (reading.start < from || reading.end >= to) return []
        const isExpected = isAddressOf(interval, reading)
        const restoredAfter = (editsByName.get(name) ?? [])
          .filter(({ start }) => start <= reading.end)
          .reduce((last, { end }) => Math.max(last, end), 0)
        const isPublished = confirmedAt > restoredAfter
        if (isExpected) confirmedAt = reading.start
        if (isExpected || !isPublished) return []
        const what = reading.addresses.length === 0 ? 'no address' : reading.addresses.join(' and ')
        return [`${name} of ${grant.owner} had ${what} at ${new Date(reading.end).toISOString()}`]
      })
  })
}

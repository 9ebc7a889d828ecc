import type { NameObservation, NameOperation, ObservedState } from './operations.ts'
import {
  describeInterval,
  findPossibleAddresses,
  groupOperations,
  type OwnershipInterval,
  toOwnershipIntervals,
} from './ownership.ts'

const formatState = (state: ObservedState | null | undefined): string =>
  state ? `${state.state} by ${state.owner}` : 'free'

const findStaleRead = (
  interval: OwnershipInterval,
  { source, start, end }: NameObservation,
  state: ObservedState | null,
): string | undefined => {
  const { grant, commitment, from, to, expiresAt, mayBeActiveFrom } = interval
  const describe = (what: string) =>
    `${source} returned ${what} at ${new Date(end).toISOString()}; ${describeInterval(interval)}`
  // The database compares the expiry when a commit begins. Until the commit is visible, an expired reservation reads as free.
  const isLateCommit = commitment !== undefined && end >= expiresAt && start < commitment.end
  const isDuring = start >= Math.max(from, grant.end) && end < to && !isLateCommit
  if (isDuring && state?.owner !== grant.owner) return describe(formatState(state))
  if (state?.owner !== grant.owner) return undefined
  if (isDuring && commitment && start >= commitment.end) {
    const addresses = findPossibleAddresses(interval, { start, end })
    if (!addresses.includes(state.address ?? ''))
      return describe(`${formatState(state)} with address ${state.address} instead of ${addresses.join(' or ')}`)
  }
  return end < mayBeActiveFrom && state.state === 'active' ? describe('an active name before any commit') : undefined
}

/** After an acknowledged release, the owner must be gone. A retried reserve is exempt: a late attempt can reserve again. */
const isReadAfterRelease = (
  { grant }: OwnershipInterval,
  operations: readonly NameOperation[],
  { start }: NameObservation,
  state: ObservedState | null,
): boolean =>
  state?.owner === grant.owner &&
  grant.attempts === 1 &&
  operations.some(
    operation =>
      operation.kind === 'release' && operation.isAnswered && operation.token === grant.token && operation.end < start,
  )

/** Every read that starts after an acknowledged write shows it until another write replaces it. */
export const findStaleReads = (
  operations: readonly NameOperation[],
  observations: readonly NameObservation[],
): string[] => {
  const histories = new Map(
    [...groupOperations(operations)].map(([name, nameOperations]) => [
      name,
      { operations: nameOperations, intervals: toOwnershipIntervals(nameOperations) },
    ]),
  )
  return observations.flatMap(observation =>
    [...(observation.isCompleteList ? histories.keys() : observation.states.keys())].flatMap(name => {
      const { operations: own, intervals } = histories.get(name) ?? { operations: [], intervals: [] }
      const state = observation.states.get(name) ?? null
      return intervals.flatMap(interval => {
        const violation = findStaleRead(interval, observation, state)
        if (violation) return [violation]
        return isReadAfterRelease(interval, own, observation, state)
          ? [
              `${observation.source} returned ${formatState(state)} after an acknowledged release; ${describeInterval(interval)}`,
            ]
          : []
      })
    }),
  )
}

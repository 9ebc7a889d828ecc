import type { Operation } from '@pool/test-kit/linearizability/history.ts'

/** A time in which a controller acts as the holder: from a grant's answer to its expiry, unless it gives the lease up before. */
export interface HolderInterval {
  readonly slot: string
  readonly holder: string
  readonly generation: number
  readonly from: number
  readonly to: number
}

/**
 * The end of a belief by what its holder did later. A release that was sent ends it, answered or not; a renewal that was
 * granted begins another; one without an answer may have been made, with a lifetime that ends before.
 */
const endBy = (later: Operation): number => {
  const { invocation, completion, sentAt, receivedAt } = later
  if (invocation.kind === 'release') return sentAt
  if (invocation.kind === 'read') return Number.POSITIVE_INFINITY
  if (completion) return completion.status === 200 ? receivedAt : Number.POSITIVE_INFINITY
  return sentAt + invocation.ttlMs
}

/** What each holder went by, on its own knowledge alone. */
export const toHolderIntervals = (operations: readonly Operation[]): HolderInterval[] => {
  const own = operations.filter(({ invocation }) => invocation.kind !== 'read')
  const keyOf = ({ slot, invocation }: Operation) => `${slot} ${invocation.kind === 'read' ? '' : invocation.holder}`
  return [...Map.groupBy(own, keyOf).values()].flatMap(ofHolder => {
    const inTime = ofHolder.toSorted((a, b) => a.start - b.start)
    return inTime.flatMap(({ slot, invocation, completion, receivedAt }, index) => {
      if (invocation.kind === 'read' || invocation.kind === 'release' || completion?.status !== 200) return []
      const { generation, expiresAt } = completion.lease
      let to = Date.parse(expiresAt)
      for (const later of inTime.slice(index + 1)) {
        if (later.sentAt >= to) break
        to = Math.min(to, endBy(later))
      }
      return [{ slot, holder: invocation.holder, generation, from: receivedAt, to }]
    })
  })
}

/** One holder a lease generation, and generations rise with time. */
export const findHolderOverlaps = (beliefs: readonly HolderInterval[]): string[] =>
  [...Map.groupBy(beliefs, ({ slot }) => slot).values()].flatMap(ofSlot => {
    const faults: string[] = []
    const holders = new Map<number, string>()
    let longest: HolderInterval | undefined
    for (const belief of ofSlot.toSorted((a, b) => a.generation - b.generation)) {
      const { slot, holder, generation, from, to } = belief
      const other = holders.get(generation)
      if (other !== undefined) faults.push(`${slot}: generation ${generation} of ${other} and of ${holder}`)
      holders.set(generation, holder)
      if (longest && longest.holder !== holder && from < longest.to && from < to)
        faults.push(
          `${slot}: ${holder} (${generation}) acts while ${longest.holder} (${longest.generation}) does, by ${longest.to - from} ms`,
        )
      if (from < to && (!longest || to > longest.to)) longest = belief
    }
    return faults
  })

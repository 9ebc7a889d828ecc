import type { Operation } from '@pool/test-kit/linearizability/history.ts'

/** The time during which a controller acts as the holder: from the response that granted the lease to its expiry or release. */
export interface HolderInterval {
  readonly slot: string
  readonly holder: string
  readonly generation: number
  readonly from: number
  readonly to: number
}

/**
 * The end of a holder interval because of a later operation of the holder. Sending a release ends it, with or without a
 * response. A granted renewal starts the next interval. A renewal without a response may have set an earlier expiry.
 */
const endAfter = (later: Operation): number => {
  const { invocation, completion, sentAt, receivedAt } = later
  if (invocation.kind === 'release') return sentAt
  if (invocation.kind === 'read') return Number.POSITIVE_INFINITY
  if (completion) return completion.status === 200 ? receivedAt : Number.POSITIVE_INFINITY
  return sentAt + invocation.ttlMs
}

/** Derived from the responses that each holder received, as the holder itself would. */
export const toHolderIntervals = (operations: readonly Operation[]): HolderInterval[] => {
  const writes = operations.filter(({ invocation }) => invocation.kind !== 'read')
  const toKey = ({ slot, invocation }: Operation) => `${slot} ${invocation.kind === 'read' ? '' : invocation.holder}`
  return [...Map.groupBy(writes, toKey).values()].flatMap(holderOperations => {
    const ordered = holderOperations.toSorted((a, b) => a.start - b.start)
    return ordered.flatMap(({ slot, invocation, completion, receivedAt }, index) => {
      if (invocation.kind === 'read' || invocation.kind === 'release' || completion?.status !== 200) return []
      const { generation, expiresAt } = completion.lease
      let to = Date.parse(expiresAt)
      for (const later of ordered.slice(index + 1)) {
        if (later.sentAt >= to) break
        to = Math.min(to, endAfter(later))
      }
      return [{ slot, holder: invocation.holder, generation, from: receivedAt, to }]
    })
  })
}

/** One holder per lease generation, and generations increase with time. */
export const findHolderOverlaps = (intervals: readonly HolderInterval[]): string[] =>
  [...Map.groupBy(intervals, ({ slot }) => slot).values()].flatMap(slotIntervals => {
    const violations: string[] = []
    const holders = new Map<number, string>()
    let longest: HolderInterval | undefined
    for (const interval of slotIntervals.toSorted((a, b) => a.generation - b.generation)) {
      const { slot, holder, generation, from, to } = interval
      const other = holders.get(generation)
      if (other !== undefined) violations.push(`${slot}: generation ${generation} granted to ${other} and to ${holder}`)
      holders.set(generation, holder)
      if (longest && longest.holder !== holder && from < longest.to && from < to)
        violations.push(
          `${slot}: ${holder} (${generation}) and ${longest.holder} (${longest.generation}) overlap by ${longest.to - from} ms`,
        )
      if (from < to && (!longest || to > longest.to)) longest = interval
    }
    return violations
  })

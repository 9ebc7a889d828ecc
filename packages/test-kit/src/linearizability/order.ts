import type { Operation } from './history.ts'
import type { Observation, Write } from './writes.ts'

interface Placed {
  readonly operation: Operation
  readonly place: number
}

/** Write g stands between what saw g-1 and what saw g. */
const placesOf = (writes: readonly Write[], observations: readonly Observation[]): Placed[] => [
  ...writes.map(({ operation, generation }) => ({ operation, place: 2 * generation })),
  ...observations.map(({ operation, generation }) => ({ operation, place: 2 * generation + 1 })),
]

/**
 * Each operation that began after another had ended, whose place lies before that other's.
 *
 * Places are given by generations, so nothing is searched: if there is no such pair, sorting by place, and by start where
 * places are equal, is an order that keeps to real time and in which every observation follows the write that it saw.
 * And no pair is missed: of all that ended before an operation began, one lies behind it exactly if the furthest does.
 */
export const misplaced = (
  writes: readonly Write[],
  observations: readonly Observation[],
): { readonly earlier: Operation; readonly later: Operation }[] => {
  const placed = placesOf(writes, observations)
  const byStart = placed.toSorted((a, b) => a.operation.start - b.operation.start)
  const byEnd = placed.toSorted((a, b) => a.operation.end - b.operation.end)
  const faults: { earlier: Operation; later: Operation }[] = []
  let ended = 0
  let furthest: Placed | undefined
  for (const { operation, place } of byStart) {
    for (let next = byEnd[ended]; next && next.operation.end < operation.start; next = byEnd[++ended]) {
      if (!furthest || next.place > furthest.place) furthest = next
    }
    if (furthest && furthest.place > place) faults.push({ earlier: furthest.operation, later: operation })
  }
  return faults
}

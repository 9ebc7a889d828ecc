import type { Lease } from '@pool/contract/lease'
import type { Operation } from './history.ts'

export interface Write {
  readonly operation: Operation
  /** The one that it made. */
  readonly generation: number
  /** What the slot held from then on; undefined: the write got no answer, and nobody saw it. */
  readonly lease: Lease | undefined
}

/** A call that changed nothing and tells of the slot. */
export interface Observation {
  readonly operation: Operation
  readonly generation: number
}

export interface Slot {
  readonly writes: readonly Write[]
  readonly observations: readonly Observation[]
  /** Writes without an answer. */
  readonly unknown: readonly Write[]
}

export const free = (generation: number): Lease => ({ holder: '', acquiredAt: '', expiresAt: '', generation })

/** When somebody may first have come to hold a generation; Infinity: never. */
const beginnings = (operations: readonly Operation[]) => {
  const starts = new Map<string, number>()
  const keyOf = (generation: number, holder: string) => `${generation} ${holder}`
  for (const { asked, told, start } of operations) {
    if ((asked.kind !== 'acquire' && asked.kind !== 'renew') || (told && told.status !== 200)) continue
    const key = keyOf(asked.generation + 1, asked.holder)
    starts.set(key, Math.min(start, starts.get(key) ?? Number.POSITIVE_INFINITY))
  }
  return (generation: number, holder: string) => starts.get(keyOf(generation, holder)) ?? Number.POSITIVE_INFINITY
}

/**
 * The calls of one slot in the order in which they began, each with the generation that it made or saw. An answered release tells none: it made the one
 * after its If-Match, or else the slot was never written, which is generation 0. It was the latter if its holder
 * could not yet hold what it released; since a client has one call under way at a time, that is never in doubt.
 */
export const sorted = (operations: readonly Operation[]): Slot => {
  const writes: Write[] = []
  const observations: Observation[] = []
  const unknown: Write[] = []
  const beginningOf = beginnings(operations)
  for (const operation of operations.toSorted((a, b) => a.start - b.start)) {
    const { asked, told, end } = operation
    if (!told) {
      if (asked.kind === 'read') continue
      const generation = asked.generation + 1
      const lease = asked.kind === 'release' ? free(generation) : undefined
      unknown.push({ operation: { ...operation, end: Number.POSITIVE_INFINITY }, generation, lease })
    } else if (told.status === 200 && asked.kind !== 'read') {
      writes.push({ operation, generation: told.lease.generation, lease: told.lease })
    } else if (told.status === 204 && asked.kind === 'release' && beginningOf(asked.generation, asked.holder) <= end) {
      const generation = asked.generation + 1
      writes.push({ operation, generation, lease: free(generation) })
    } else {
      const generation = 'lease' in told ? told.lease.generation : told.status === 304 ? told.generation : 0
      observations.push({ operation, generation })
    }
  }
  return { writes, observations, unknown }
}

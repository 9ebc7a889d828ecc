import type { Lease } from '@pool/contract/lease'

/** What a client asks of the witness. */
export type Invocation =
  | { readonly kind: 'read'; readonly known?: number }
  | { readonly kind: 'acquire' | 'renew'; readonly holder: string; readonly generation: number; readonly ttlMs: number }
  | { readonly kind: 'release'; readonly holder: string; readonly generation: number }

/** What the witness responded. A 503 is not a completion: it does not show whether the write was applied. */
export type Completion =
  | { readonly status: 200 | 412; readonly lease: Lease }
  | { readonly status: 304; readonly generation: number }
  | { readonly status: 204 | 404 }

/** One call as its client saw it. A client has one call in flight at a time. */
export interface Operation {
  readonly slot: string
  readonly invocation: Invocation
  /** Absent: no response. The write may have been applied at any time since its start, or not at all. */
  readonly completion?: Completion
  /** Milliseconds on a monotonic clock: they determine the real-time order of operations. */
  readonly start: number
  readonly end: number
  /** Milliseconds since the epoch, on the clock that the witness uses for expiry. */
  readonly sentAt: number
  readonly receivedAt: number
}

export interface Write {
  readonly operation: Operation
  /** The generation that it created. */
  readonly generation: number
  /** The state of the slot from then on; undefined: the write had no response and no operation observed its result. */
  readonly lease: Lease | undefined
}

/** A call that changed nothing and shows the generation of the slot. */
export interface Observation {
  readonly operation: Operation
  readonly generation: number
}

export interface SlotHistory {
  readonly writes: readonly Write[]
  readonly observations: readonly Observation[]
  /** Writes without a response. */
  readonly indeterminate: readonly Write[]
}

export const freeLease = (generation: number): Lease => ({ holder: '', acquiredAt: '', expiresAt: '', generation })

/** The earliest start of a call that could have granted a generation to a holder; Infinity: there is no such call. */
const findEarliestGrants = (operations: readonly Operation[]) => {
  const starts = new Map<string, number>()
  const toKey = (generation: number, holder: string) => `${generation} ${holder}`
  for (const { invocation, completion, start } of operations) {
    if ((invocation.kind !== 'acquire' && invocation.kind !== 'renew') || (completion && completion.status !== 200))
      continue
    const key = toKey(invocation.generation + 1, invocation.holder)
    starts.set(key, Math.min(start, starts.get(key) ?? Number.POSITIVE_INFINITY))
  }
  return (generation: number, holder: string) => starts.get(toKey(generation, holder)) ?? Number.POSITIVE_INFINITY
}

/**
 * The operations of one slot by start time, each with the generation that it created or observed. The response to a release
 * has no generation: the release created the one after its If-Match, unless the slot was never written (generation 0).
 * The slot was never written exactly if the holder could not hold that generation yet. This is unambiguous because a
 * client has one call in flight at a time.
 */
export const classifyOperations = (operations: readonly Operation[]): SlotHistory => {
  const writes: Write[] = []
  const observations: Observation[] = []
  const indeterminate: Write[] = []
  const earliestGrant = findEarliestGrants(operations)
  for (const operation of operations.toSorted((a, b) => a.start - b.start)) {
    const { invocation, completion, end } = operation
    if (!completion) {
      if (invocation.kind === 'read') continue
      const generation = invocation.generation + 1
      const lease = invocation.kind === 'release' ? freeLease(generation) : undefined
      indeterminate.push({ operation: { ...operation, end: Number.POSITIVE_INFINITY }, generation, lease })
    } else if (completion.status === 200 && invocation.kind !== 'read') {
      writes.push({ operation, generation: completion.lease.generation, lease: completion.lease })
    } else if (
      completion.status === 204 &&
      invocation.kind === 'release' &&
      earliestGrant(invocation.generation, invocation.holder) <= end
    ) {
      const generation = invocation.generation + 1
      writes.push({ operation, generation, lease: freeLease(generation) })
    } else {
      const generation =
        'lease' in completion ? completion.lease.generation : completion.status === 304 ? completion.generation : 0
      observations.push({ operation, generation })
    }
  }
  return { writes, observations, indeterminate }
}

/** Throughput and counts by kind and status, in one line. */
export const summarizeHistory = (history: readonly Operation[]): string => {
  const start = history.reduce((least, operation) => Math.min(least, operation.start), Number.POSITIVE_INFINITY)
  const end = history.reduce((most, operation) => Math.max(most, operation.end), 0)
  const seconds = (end - start) / 1_000
  const counts = Map.groupBy(
    history,
    ({ invocation, completion }) => `${invocation.kind} ${completion?.status ?? 'no response'}`,
  )
  const parts = [...counts].map(([kind, { length }]) => `${kind}: ${length}`).toSorted()
  const throughput = `${history.length} operations in ${seconds.toFixed(1)} s, ${Math.round(history.length / seconds)}/s`
  return `${throughput}; ${parts.join(', ')}`
}

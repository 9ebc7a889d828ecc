import type { Lease } from '@pool/contract/lease'
import type { Completion, Operation } from './history.ts'

/**
 * Injects the effect of a witness defect into a recorded history. The result contradicts the generations of acknowledged
 * writes, so it is a violation on any clock and whatever became of the writes without a response.
 */
export type Tamper = (history: readonly Operation[]) => Operation[]

/** The completion that the defect produces; undefined: the defect cannot show in this operation. */
type Change = (operation: Operation) => Completion | undefined

/** Applies the change to the middle one of the operations that it applies to. */
const changeOne = (history: readonly Operation[], change: Change): Operation[] => {
  const candidates = history.flatMap((operation, index) => {
    const completion = change(operation)
    return completion ? [{ index, completion }] : []
  })
  const target = candidates[candidates.length >> 1]
  if (!target) throw new Error('the history has no operation in which this defect can show')
  return history.map((operation, index) =>
    index === target.index ? { ...operation, completion: target.completion } : operation,
  )
}

interface Grant {
  readonly lease: Lease
  /** When its write completed. */
  readonly end: number
}

/** Finds the acknowledged grant that created a generation; undefined: a release or a write without a response created it. */
const indexGrants = (history: readonly Operation[]) => {
  const toKey = (slot: string, generation: number) => `${slot} ${generation}`
  const grants = new Map<string, Grant>()
  for (const { slot, invocation, completion, end } of history) {
    if (invocation.kind === 'read' || completion?.status !== 200) continue
    grants.set(toKey(slot, completion.lease.generation), { lease: completion.lease, end })
  }
  return (slot: string, generation: number) => grants.get(toKey(slot, generation))
}

const replaceWithPrevious = (
  history: readonly Operation[],
  appliesTo: (operation: Operation) => boolean,
): Operation[] => {
  const findGrant = indexGrants(history)
  return changeOne(history, operation => {
    const { slot, completion, start } = operation
    if (!appliesTo(operation) || !completion || !('lease' in completion)) return undefined
    const current = findGrant(slot, completion.lease.generation)
    const before = findGrant(slot, completion.lease.generation - 1)
    return before && current && current.end < start ? { ...completion, lease: before.lease } : undefined
  })
}

/** A read from a replica that is one write behind. */
export const staleRead: Tamper = history => replaceWithPrevious(history, ({ invocation }) => invocation.kind === 'read')

/** A 412 whose body was read before the decision. */
export const staleRejection: Tamper = history =>
  replaceWithPrevious(
    history,
    ({ invocation, completion }) =>
      completion?.status === 412 &&
      invocation.kind === 'renew' &&
      invocation.generation < Math.max(0, completion.lease.generation - 1),
  )

/** The loser of a race with an acknowledged grant gets a 200. */
export const doubleGrant: Tamper = history => {
  const findGrant = indexGrants(history)
  return changeOne(history, ({ slot, invocation, completion, sentAt }) => {
    if (invocation.kind !== 'acquire' || completion?.status !== 412) return undefined
    const { holder, ttlMs } = invocation
    const generation = invocation.generation + 1
    const winner = findGrant(slot, generation)
    if (!winner || winner.lease.holder === holder || completion.lease.generation !== generation) return undefined
    const lease = {
      holder,
      acquiredAt: new Date(sentAt).toISOString(),
      expiresAt: new Date(sentAt + ttlMs).toISOString(),
      generation,
    }
    return { status: 200, lease }
  })
}

const LOST_WRITES = 2

/** A slot that lost its last writes and continues to count from there: it grants a generation that it has granted before. */
export const generationBack: Tamper = history => {
  const findGrant = indexGrants(history)
  const firsts = history.filter(({ slot, invocation, completion, start }) => {
    if (invocation.kind === 'read' || completion?.status !== 200) return false
    const lost = findGrant(slot, completion.lease.generation - LOST_WRITES)
    return lost !== undefined && lost.end < start
  })
  const first = firsts[firsts.length >> 1]
  if (!first) throw new Error('the history has no grant that could repeat an earlier generation')
  const toEarlier = (generation: number) => Math.max(0, generation - LOST_WRITES)
  return history.map(operation => {
    const { slot, invocation, completion, start } = operation
    if (slot !== first.slot || start < first.start || !completion) return operation
    return {
      ...operation,
      invocation:
        invocation.kind === 'read' ? invocation : { ...invocation, generation: toEarlier(invocation.generation) },
      completion:
        'lease' in completion
          ? { ...completion, lease: { ...completion.lease, generation: toEarlier(completion.lease.generation) } }
          : completion,
    }
  })
}

/** A release that was acknowledged but not applied. */
export const lostRelease: Tamper = history => {
  const findGrant = indexGrants(history)
  const releases = new Map(
    history.flatMap(({ slot, invocation, completion, start, end }) => {
      if (invocation.kind !== 'release' || completion?.status !== 204) return []
      // A 204 is also the response to the release of a slot that was never written.
      const released = findGrant(slot, invocation.generation)
      const isOwn = released?.lease.holder === invocation.holder && released.end < start
      return isOwn ? [[`${slot} ${invocation.generation + 1}`, end] as const] : []
    }),
  )
  return changeOne(history, ({ slot, invocation, completion, start }) => {
    if (invocation.kind !== 'read' || completion?.status !== 200 || completion.lease.holder !== '') return undefined
    const { generation } = completion.lease
    const held = findGrant(slot, generation - 1)
    const releasedAt = releases.get(`${slot} ${generation}`) ?? Number.POSITIVE_INFINITY
    return held && releasedAt < start ? { status: 200, lease: held.lease } : undefined
  })
}

import type { Lease } from '@pool/contract/lease'
import type { Completion, Operation } from './history.ts'

/** Injects the effect of a witness defect into a recorded history. */
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

/** Finds the grant that created a generation; undefined if a release created it. */
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

/** The loser of a race gets a 200. */
export const doubleGrant: Tamper = history =>
  changeOne(history, ({ invocation, completion, sentAt }) => {
    if (
      invocation.kind !== 'acquire' ||
      completion?.status !== 412 ||
      completion.lease.generation !== invocation.generation + 1
    )
      return undefined
    const { holder, generation, ttlMs } = invocation
    const lease = {
      holder,
      acquiredAt: new Date(sentAt).toISOString(),
      expiresAt: new Date(sentAt + ttlMs).toISOString(),
      generation: generation + 1,
    }
    return { status: 200, lease }
  })

/** A slot that lost its last writes and continues to count from there. */
export const generationBack: Tamper = history => {
  const start = history.reduce((least, operation) => Math.min(least, operation.start), Number.POSITIVE_INFINITY)
  const end = history.reduce((most, operation) => Math.max(most, operation.end), 0)
  const lostWrites = 2
  const toEarlier = (generation: number) => Math.max(0, generation - lostWrites)
  return history.map(operation => {
    const { slot, invocation, completion } = operation
    if (slot !== history[0]?.slot || operation.start < (start + end) / 2 || !completion) return operation
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
    history.flatMap(({ slot, invocation, completion, end }) =>
      invocation.kind === 'release' && completion?.status === 204
        ? [[`${slot} ${invocation.generation + 1}`, end] as const]
        : [],
    ),
  )
  return changeOne(history, ({ slot, invocation, completion, start }) => {
    if (invocation.kind !== 'read' || completion?.status !== 200 || completion.lease.holder !== '') return undefined
    const { generation } = completion.lease
    const held = findGrant(slot, generation - 1)
    const releasedAt = releases.get(`${slot} ${generation}`) ?? Number.POSITIVE_INFINITY
    return held && releasedAt < start ? { status: 200, lease: held.lease } : undefined
  })
}

import type { Lease } from '@pool/contract/lease'
import type { Operation, Told } from './history.ts'

/** Defects that a witness could have, each put into a recorded history in one place. */
export type Tamper = (history: readonly Operation[]) => Operation[]

/** Another answer to an operation; undefined: it is not one that the defect could show in. */
type Change = (operation: Operation) => Told | undefined

/** Of the places where a change can be made, the middle one. */
const changed = (history: readonly Operation[], change: Change): Operation[] => {
  const places = history.flatMap((operation, index) => {
    const told = change(operation)
    return told ? [{ index, told }] : []
  })
  const place = places[places.length >> 1]
  if (!place) throw new Error('no operation of the history can be changed so')
  return history.map((operation, index) => (index === place.index ? { ...operation, told: place.told } : operation))
}

interface Made {
  readonly lease: Lease
  /** When the write that made it was answered. */
  readonly end: number
}

/** What a generation of a slot was, unless it was a release that made it. */
const granted = (history: readonly Operation[]) => {
  const keyOf = (slot: string, generation: number) => `${slot} ${generation}`
  const made = new Map<string, Made>()
  for (const { slot, asked, told, end } of history) {
    if (asked.kind === 'read' || told?.status !== 200) continue
    made.set(keyOf(slot, told.lease.generation), { lease: told.lease, end })
  }
  return (slot: string, generation: number) => made.get(keyOf(slot, generation))
}

const outdated = (history: readonly Operation[], isMeant: (operation: Operation) => boolean): Operation[] => {
  const madeOf = granted(history)
  return changed(history, operation => {
    const { slot, told, start } = operation
    if (!isMeant(operation) || !told || !('lease' in told)) return undefined
    const current = madeOf(slot, told.lease.generation)
    const before = madeOf(slot, told.lease.generation - 1)
    return before && current && current.end < start ? { ...told, lease: before.lease } : undefined
  })
}

/** A read from a copy that is one write behind. */
export const staleRead: Tamper = history => outdated(history, ({ asked }) => asked.kind === 'read')

/** A 412 whose body was loaded before the refusal was decided. */
export const staleRefusal: Tamper = history =>
  outdated(
    history,
    ({ asked, told }) =>
      told?.status === 412 && asked.kind === 'renew' && asked.generation < Math.max(0, told.lease.generation - 1),
  )

/** The loser of a race is told that it won. */
export const doubleGrant: Tamper = history =>
  changed(history, ({ asked, told, sentAt }) => {
    if (asked.kind !== 'acquire' || told?.status !== 412 || told.lease.generation !== asked.generation + 1)
      return undefined
    const { holder, generation, ttlMs } = asked
    const lease = {
      holder,
      acquiredAt: new Date(sentAt).toISOString(),
      expiresAt: new Date(sentAt + ttlMs).toISOString(),
      generation: generation + 1,
    }
    return { status: 200, lease }
  })

/** A slot that lost its last writes, and counts on from there. */
export const generationBack: Tamper = history => {
  const start = history.reduce((least, operation) => Math.min(least, operation.start), Number.POSITIVE_INFINITY)
  const end = history.reduce((most, operation) => Math.max(most, operation.end), 0)
  const lost = 2
  const back = (generation: number) => Math.max(0, generation - lost)
  return history.map(operation => {
    const { slot, asked, told } = operation
    if (slot !== history[0]?.slot || operation.start < (start + end) / 2 || !told) return operation
    return {
      ...operation,
      asked: asked.kind === 'read' ? asked : { ...asked, generation: back(asked.generation) },
      told: 'lease' in told ? { ...told, lease: { ...told.lease, generation: back(told.lease.generation) } } : told,
    }
  })
}

/** A release was answered, and the slot is still held. */
export const lostRelease: Tamper = history => {
  const madeOf = granted(history)
  const releases = new Map(
    history.flatMap(({ slot, asked, told, end }) =>
      asked.kind === 'release' && told?.status === 204 ? [[`${slot} ${asked.generation + 1}`, end] as const] : [],
    ),
  )
  return changed(history, ({ slot, asked, told, start }) => {
    if (asked.kind !== 'read' || told?.status !== 200 || told.lease.holder !== '') return undefined
    const { generation } = told.lease
    const held = madeOf(slot, generation - 1)
    const releasedAt = releases.get(`${slot} ${generation}`) ?? Number.POSITIVE_INFINITY
    return held && releasedAt < start ? { status: 200, lease: held.lease } : undefined
  })
}

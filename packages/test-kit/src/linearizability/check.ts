import type { Lease } from '@pool/contract/lease'
import type { Operation } from './history.ts'
import { misplaced } from './order.ts'
import { effectFault, refusalFault, statusFault } from './rules.ts'
import { free, type Slot, sorted, type Write } from './writes.ts'

export type Rule =
  /** Two writes made one generation. */
  | 'repeat'
  /** A generation was passed over, or shown and made by nobody. */
  | 'gap'
  /** Against real time: a state was shown before or after it was the current one. */
  | 'order'
  /** A write does not follow from the state before it. */
  | 'effect'
  /** A 412 that its own body does not justify. */
  | 'refusal'
  /** A body differs from the state of its generation. */
  | 'body'
  | 'status'

export interface Fault {
  readonly rule: Rule
  readonly detail: string
  readonly operations: readonly Operation[]
}

const isSame = (a: Lease, b: Lease): boolean =>
  a.generation === b.generation && a.holder === b.holder && a.acquiredAt === b.acquiredAt && a.expiresAt === b.expiresAt

const shownBy = ({ told }: Operation): Lease | undefined => (told && 'lease' in told ? told.lease : undefined)

/**
 * Which of several writes without an answer made a generation: the earliest that can follow from the state before and has the holder
 * that was seen, for with a later one an order could seem wrong that with this one is right. When nobody saw it and several
 * can have made it, no state is claimed.
 */
const likeliest = (writes: readonly Write[], seen: Lease | undefined, before: Lease | undefined): Write | undefined => {
  const fitting = writes.filter(({ operation }) => {
    const holder = 'holder' in operation.asked && operation.asked.kind !== 'release' ? operation.asked.holder : ''
    return (!seen || holder === seen.holder) && (!before || effectFault(before, operation) === undefined)
  })
  const [first = writes[0]] = fitting
  return first && !seen && fitting.length > 1 ? { ...first, lease: undefined } : first
}

/** The writes by their generation, those without an answer where nothing else explains one; and what is wrong with that. */
const sequence = ({ writes, observations, unknown }: Slot) => {
  const faults: Fault[] = []
  const made = new Map<number, Write>()
  for (const write of writes) {
    const other = made.get(write.generation)
    if (!other) made.set(write.generation, write)
    else {
      const operations = [other.operation, write.operation]
      faults.push({ rule: 'repeat', detail: `generation ${write.generation} was made twice`, operations })
    }
  }
  const spare = Map.groupBy(unknown, write => write.generation)
  const seen = new Map(observations.map(({ generation, operation }) => [generation, operation]))
  const leaseOf = (generation: number) => (generation === 0 ? free(0) : made.get(generation)?.lease)
  const all = new Set([...made.keys(), ...seen.keys()])
  all.delete(0)
  let before = 0
  for (const generation of [...all].toSorted((a, b) => a - b)) {
    for (let missing = before + 1; missing <= generation; missing++) {
      if (made.has(missing)) continue
      const witness = seen.get(missing)
      const write = likeliest(spare.get(missing) ?? [], witness && shownBy(witness), leaseOf(missing - 1))
      if (!write) {
        const operation = made.get(generation)?.operation ?? seen.get(generation)
        const operations = operation ? [operation] : []
        faults.push({ rule: 'gap', detail: `nobody made generation ${missing}`, operations })
        break
      }
      made.set(missing, { ...write, lease: write.lease ?? (witness && shownBy(witness)) })
    }
    before = generation
  }
  return { made, faults }
}

const checkSlot = (operations: readonly Operation[]): Fault[] => {
  const slot = sorted(operations)
  const { made, faults } = sequence(slot)
  const add = (rule: Rule, detail: string | undefined, ...of: Operation[]) => {
    if (detail !== undefined) faults.push({ rule, detail, operations: of })
  }
  const leaseOf = (generation: number) => (generation === 0 ? free(0) : made.get(generation)?.lease)

  // Of two that made one generation, both have their place, and both follow from the one before.
  const writes = [...new Set([...made.values(), ...slot.writes])]
  for (const { operation, generation } of writes) {
    const before = leaseOf(generation - 1)
    if (before) add('effect', effectFault(before, operation), operation)
  }
  for (const { operation, generation } of slot.observations) {
    const { told } = operation
    add('status', statusFault(operation, generation), operation)
    const lease = leaseOf(generation)
    const shown = shownBy(operation)
    if (lease && shown && !isSame(shown, lease)) add('body', `is not generation ${generation}`, operation)
    if (!shown || told?.status !== 412) continue
    const from = Math.max(operation.sentAt, made.get(generation)?.operation.sentAt ?? 0)
    const next = made.get(generation + 1)?.operation
    const until = Math.min(operation.answeredAt, next?.told ? next.answeredAt : Number.POSITIVE_INFINITY)
    add('refusal', refusalFault(shown, operation, { from, until }), operation)
  }
  for (const { earlier, later } of misplaced(writes, slot.observations)) {
    add('order', 'tells of a time before what had ended when it began', earlier, later)
  }
  return faults
}

/**
 * Whether a history could have come from slots that do one call at a time, each at an instant between its start and its
 * end. Finding such an order is hard in general; here every successful write carries a number of its own, so there is
 * one order that can be right, and it is only checked: O(n log n).
 */
export const check = (history: readonly Operation[]): Fault[] =>
  [...Map.groupBy(history, ({ slot }) => slot).values()].flatMap(checkSlot)

/** A fault in a line, with what it is about below it. */
export const describeFault = ({ rule, detail, operations }: Fault): string =>
  [`${rule}: ${detail}`, ...operations.map(operation => `  ${JSON.stringify(operation)}`)].join('\n')

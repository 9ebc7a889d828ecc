import type { Lease } from '@pool/contract/lease'
import {
  classifyOperations,
  freeLease,
  type Observation,
  type Operation,
  type SlotHistory,
  type Write,
} from './history.ts'

export type Rule =
  /** Two writes created the same generation. */
  | 'duplicate'
  /** No write created a generation that a later one or an observation implies. */
  | 'gap'
  /** Against real time: an operation observed a state before or after it was current. */
  | 'real-time'
  /** A write does not follow from the state before it. */
  | 'effect'
  /** A 412 that its own body does not justify. */
  | 'rejection'
  /** A body differs from the state of its generation. */
  | 'body'
  /** The status does not fit the kind of call and the generation. */
  | 'status'

export interface Violation {
  readonly rule: Rule
  readonly detail: string
  readonly operations: readonly Operation[]
}

/**
 * The rules of the contract, written again from the exchanged times instead of the code under test. The witness runs on
 * this machine's clock, so it decides between `sentAt` and `receivedAt`, to the millisecond.
 */

/** The part of an operation in which a state could be current, in milliseconds since the epoch. */
interface TimeWindow {
  readonly from: number
  readonly until: number
}

/** Why a write cannot follow from the state before it; undefined: it can. */
const checkEffect = (before: Lease, { invocation, completion, sentAt, receivedAt }: Operation): string | undefined => {
  if (invocation.kind === 'read') return undefined
  if (invocation.generation !== before.generation)
    return `follows generation ${before.generation}, which its If-Match does not name`
  if (invocation.kind === 'release')
    return before.holder === invocation.holder ? undefined : 'released a lease of another holder'
  if (completion?.status !== 200) return undefined

  const { lease } = completion
  const decidedAt = Date.parse(lease.expiresAt) - invocation.ttlMs
  if (!(decidedAt >= sentAt && decidedAt <= receivedAt)) return 'expires at another time than one TTL after the grant'
  if (lease.holder !== invocation.holder) return 'granted to another holder than the request names'
  // A free slot has no expiry: a comparison with NaN is false.
  const isLive = decidedAt < Date.parse(before.expiresAt)
  const isOwn = before.holder === invocation.holder
  if (isLive && !isOwn) return 'granted while another holder had the lease'
  if (invocation.kind === 'renew' && !(isLive && isOwn)) return 'renewed a lease that its sender no longer held'
  const acquiredAt = isLive ? before.acquiredAt : new Date(decidedAt).toISOString()
  return lease.acquiredAt === acquiredAt ? undefined : `acquired at ${lease.acquiredAt} instead of ${acquiredAt}`
}

/** Why the state in the body of a 412 allows the request throughout the window; undefined: it does not. */
const checkRejection = (current: Lease, { invocation }: Operation, { from, until }: TimeWindow): string | undefined => {
  if (invocation.kind === 'read' || invocation.generation !== current.generation) return undefined
  const isOwn = invocation.holder === current.holder
  const expiresAt = Date.parse(current.expiresAt)
  switch (invocation.kind) {
    case 'release':
      return isOwn ? 'rejected the release of a lease that its sender held' : undefined
    case 'renew':
      return isOwn && until < expiresAt ? 'rejected the renewal of a lease that its sender held' : undefined
    case 'acquire':
      if (isOwn) return 'rejected the holder of the lease'
      return from < expiresAt ? undefined : 'rejected an acquire of a free slot'
  }
}

/** Why a call of this kind cannot have this status; undefined: it can. */
const checkStatus = ({ invocation, completion }: Operation, generation: number): string | undefined => {
  if (!completion) return undefined
  const isWritten = generation > 0
  const isKnown = invocation.kind === 'read' && invocation.known === generation
  const allowed = {
    read: isWritten ? (isKnown ? 304 : 200) : 404,
    acquire: 412,
    renew: 412,
    release: isWritten ? 412 : 204,
  }[invocation.kind]
  return completion.status === allowed ? undefined : `responded ${completion.status} at generation ${generation}`
}

interface Positioned {
  readonly operation: Operation
  readonly position: number
}

/** Write g is between the observations of g-1 and those of g. */
const toPositions = (writes: readonly Write[], observations: readonly Observation[]): Positioned[] => [
  ...writes.map(({ operation, generation }) => ({ operation, position: 2 * generation })),
  ...observations.map(({ operation, generation }) => ({ operation, position: 2 * generation + 1 })),
]

/**
 * Each operation that started after another had ended although its position is before the other's.
 *
 * Generations determine the positions. If there is no such pair, sorting by position, then by start, gives an order that
 * respects real time and in which every observation follows the write that it observed. Comparing with only the
 * furthest of the operations that had ended is enough: if any of them is further, that one is.
 */
const findRealTimeViolations = (
  writes: readonly Write[],
  observations: readonly Observation[],
): { readonly earlier: Operation; readonly later: Operation }[] => {
  const positioned = toPositions(writes, observations)
  const byStart = positioned.toSorted((a, b) => a.operation.start - b.operation.start)
  const byEnd = positioned.toSorted((a, b) => a.operation.end - b.operation.end)
  const pairs: { earlier: Operation; later: Operation }[] = []
  let ended = 0
  let furthest: Positioned | undefined
  for (const { operation, position } of byStart) {
    for (let next = byEnd[ended]; next && next.operation.end < operation.start; next = byEnd[++ended]) {
      if (!furthest || next.position > furthest.position) furthest = next
    }
    if (furthest && furthest.position > position) pairs.push({ earlier: furthest.operation, later: operation })
  }
  return pairs
}

const isSame = (a: Lease, b: Lease): boolean =>
  a.generation === b.generation && a.holder === b.holder && a.acquiredAt === b.acquiredAt && a.expiresAt === b.expiresAt

const toObservedLease = ({ completion }: Operation): Lease | undefined =>
  completion && 'lease' in completion ? completion.lease : undefined

/**
 * The write that created a generation, of several writes without a response: the earliest that can follow from the state
 * before and has the observed holder. A later one could show a real-time violation where there is none. If no operation
 * observed the generation and several writes could have created it, its state stays unknown.
 */
const findCandidateWrite = (
  writes: readonly Write[],
  seen: Lease | undefined,
  before: Lease | undefined,
): Write | undefined => {
  const fitting = writes.filter(({ operation }) => {
    const holder =
      'holder' in operation.invocation && operation.invocation.kind !== 'release' ? operation.invocation.holder : ''
    return (!seen || holder === seen.holder) && (!before || checkEffect(before, operation) === undefined)
  })
  const [first = writes[0]] = fitting
  return first && !seen && fitting.length > 1 ? { ...first, lease: undefined } : first
}

/** The writes by generation, where a write without a response fills a generation that has no other; and the violations found. */
const orderWrites = ({ writes, observations, indeterminate }: SlotHistory) => {
  const violations: Violation[] = []
  const created = new Map<number, Write>()
  for (const write of writes) {
    const other = created.get(write.generation)
    if (!other) created.set(write.generation, write)
    else {
      const operations = [other.operation, write.operation]
      violations.push({ rule: 'duplicate', detail: `two writes created generation ${write.generation}`, operations })
    }
  }
  const candidates = Map.groupBy(indeterminate, write => write.generation)
  const seen = new Map(observations.map(({ generation, operation }) => [generation, operation]))
  const leaseAt = (generation: number) => (generation === 0 ? freeLease(0) : created.get(generation)?.lease)
  const all = new Set([...created.keys(), ...seen.keys()])
  all.delete(0)
  let before = 0
  for (const generation of [...all].toSorted((a, b) => a - b)) {
    for (let missing = before + 1; missing <= generation; missing++) {
      if (created.has(missing)) continue
      const observer = seen.get(missing)
      const write = findCandidateWrite(
        candidates.get(missing) ?? [],
        observer && toObservedLease(observer),
        leaseAt(missing - 1),
      )
      if (!write) {
        const operation = created.get(generation)?.operation ?? seen.get(generation)
        const operations = operation ? [operation] : []
        violations.push({ rule: 'gap', detail: `no write created generation ${missing}`, operations })
        break
      }
      created.set(missing, { ...write, lease: write.lease ?? (observer && toObservedLease(observer)) })
    }
    before = generation
  }
  return { created, violations }
}

const checkSlot = (operations: readonly Operation[]): Violation[] => {
  const slot = classifyOperations(operations)
  const { created, violations } = orderWrites(slot)
  const add = (rule: Rule, detail: string | undefined, ...related: Operation[]) => {
    if (detail !== undefined) violations.push({ rule, detail, operations: related })
  }
  const leaseAt = (generation: number) => (generation === 0 ? freeLease(0) : created.get(generation)?.lease)

  // Two writes that created the same generation are both checked against the generation before.
  const writes = [...new Set([...created.values(), ...slot.writes])]
  for (const { operation, generation } of writes) {
    const before = leaseAt(generation - 1)
    if (before) add('effect', checkEffect(before, operation), operation)
  }
  for (const { operation, generation } of slot.observations) {
    const { completion } = operation
    add('status', checkStatus(operation, generation), operation)
    const lease = leaseAt(generation)
    const shown = toObservedLease(operation)
    if (lease && shown && !isSame(shown, lease)) add('body', `differs from generation ${generation}`, operation)
    if (!shown || completion?.status !== 412) continue
    const from = Math.max(operation.sentAt, created.get(generation)?.operation.sentAt ?? 0)
    const next = created.get(generation + 1)?.operation
    const until = Math.min(operation.receivedAt, next?.completion ? next.receivedAt : Number.POSITIVE_INFINITY)
    add('rejection', checkRejection(shown, operation, { from, until }), operation)
  }
  for (const { earlier, later } of findRealTimeViolations(writes, slot.observations)) {
    add('real-time', 'shows a state older than one shown by an operation that ended before it started', earlier, later)
  }
  return violations
}

/**
 * The violations of a history; none: it is linearizable, each slot could have executed one call at a time, each at an
 * instant between its start and its end. Finding such an order is NP-complete in general. Here each successful write has a
 * unique generation, so only one order is possible, and checking it takes O(n log n).
 */
export const checkLinearizability = (history: readonly Operation[]): Violation[] =>
  [...Map.groupBy(history, ({ slot }) => slot).values()].flatMap(checkSlot)

/** The violation in one line, then each of its operations. */
export const describeViolation = ({ rule, detail, operations }: Violation): string =>
  [`${rule}: ${detail}`, ...operations.map(operation => `  ${JSON.stringify(operation)}`)].join('\n')

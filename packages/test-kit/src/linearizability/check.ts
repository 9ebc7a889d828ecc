import type { Lease } from '@pool/contract/lease'
import {
  classifyOperations,
  freeLease,
  type Observation,
  type Operation,
  type SlotHistory,
  type Write,
} from './history.ts'
import { machineClock, type TimeWindow, type WitnessClock } from './witness-clock.ts'

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
 * The rules of the contract, written again from the exchanged times instead of the code under test. The witness decides
 * between `sentAt` and `receivedAt`, to the millisecond of its clock. The clock of a slot stands still while the clock of the
 * witness is behind the last write by at most a minute. If it is behind by more, the lease starts again at that time, with
 * its whole TTL and without a new generation.
 */
const MAX_BRIDGED_MS = 60_000

/** A state that a write created; or that of a slot that was never written. */
interface State {
  readonly lease: Lease
  /** Undefined: it was never held or was released. */
  readonly held: { readonly decidedAt: number; readonly ttlMs: number } | undefined
  /** Before the decision of its write, on this machine's clock. */
  readonly since: number
}

const NEVER_WRITTEN: State = { lease: freeLease(0), held: undefined, since: Number.NEGATIVE_INFINITY }

const toState = ({ lease, operation: { invocation, sentAt } }: Write): State | undefined => {
  if (!lease) return undefined
  const ttlMs = 'ttlMs' in invocation ? invocation.ttlMs : undefined
  const held = ttlMs === undefined ? undefined : { decidedAt: Date.parse(lease.expiresAt) - ttlMs, ttlMs }
  return { lease, held, since: sentAt }
}

/** When the lease can have started again, because the clock of the witness was set back since its write. */
const findRestarts = ({ held, since }: State, until: number, clock: WitnessClock): readonly TimeWindow[] => {
  if (!held) return []
  const last = held.decidedAt - MAX_BRIDGED_MS - 1
  return clock
    .readings(since, until)
    .filter(({ from }) => from <= last)
    .map(window => ({ from: window.from, until: Math.min(window.until, last) }))
}

/** The history of a slot as far as the rules need it. */
interface SlotContext {
  readonly clock: WitnessClock
  /** The start of the first operation, on this machine's clock. */
  readonly start: number
  /** The highest `acquiredAt` up to a generation; undefined: unknown. */
  readonly lastAcquiredAt: (generation: number) => number | undefined
}

/** Whether the slot's clock can have shown `at` during a write that followed the state. */
const isPossibleTime = (at: number, before: State, operation: Operation, { clock, start }: SlotContext): boolean => {
  const { sentAt, receivedAt } = operation
  const readings = clock.readings(sentAt, receivedAt)
  const hasRestarted = () => findRestarts(before, receivedAt, clock).some(({ from }) => from <= at)
  if (readings.some(({ from, until }) => from <= at && at <= until))
    return !before.held || at >= before.held.decidedAt || hasRestarted()
  const isBridged =
    before.lease.generation > 0 &&
    readings.some(({ from, until }) => from < at && at - until <= MAX_BRIDGED_MS) &&
    clock.readings(start, receivedAt).some(({ until }) => at <= until)
  return isBridged && (!before.held || at === before.held.decidedAt || hasRestarted())
}

/** Why a write cannot follow from the state before it; undefined: it can. */
const checkEffect = (before: State, operation: Operation, context: SlotContext): string | undefined => {
  const { invocation, completion, receivedAt } = operation
  if (invocation.kind === 'read') return undefined
  if (invocation.generation !== before.lease.generation)
    return `follows generation ${before.lease.generation}, which its If-Match does not name`
  if (invocation.kind === 'release')
    return before.lease.holder === invocation.holder ? undefined : 'released a lease of another holder'
  if (completion?.status !== 200) return undefined

  const { lease } = completion
  const decidedAt = Date.parse(lease.expiresAt) - invocation.ttlMs
  if (!isPossibleTime(decidedAt, before, operation, context))
    return 'expires at another time than one TTL after the grant'
  if (lease.holder !== invocation.holder) return 'granted to another holder than the request names'
  const isOwn = before.lease.holder === invocation.holder
  // A restart only makes a lease expire earlier on the clock of the witness. Without an expiry the comparisons are false.
  const canBeLive = decidedAt < Date.parse(before.lease.expiresAt)
  const { ttlMs = 0 } = before.held ?? {}
  const restarts = canBeLive ? findRestarts(before, receivedAt, context.clock) : []
  const canBeFree = !canBeLive || restarts.some(({ from }) => from + ttlMs <= decidedAt)
  if (!canBeFree && !isOwn) return 'granted while another holder had the lease'
  if (invocation.kind === 'renew' && !(canBeLive && isOwn)) return 'renewed a lease that its sender no longer held'
  const isSameTenure = isOwn && canBeLive && lease.acquiredAt === before.lease.acquiredAt
  if (isSameTenure || (invocation.kind === 'renew' && canBeFree && canBeLive)) {
    return isSameTenure ? undefined : `acquired at ${lease.acquiredAt} instead of ${before.lease.acquiredAt}`
  }
  if (isOwn && !canBeFree) return `acquired at ${lease.acquiredAt} instead of ${before.lease.acquiredAt}`
  const last = context.lastAcquiredAt(before.lease.generation)
  if (last === undefined) return undefined
  // Tenures that start in the same millisecond differ.
  const acquiredAt = new Date(Math.max(decidedAt, last + 1)).toISOString()
  return lease.acquiredAt === acquiredAt ? undefined : `acquired at ${lease.acquiredAt} instead of ${acquiredAt}`
}

/** Why the state in the body of a 412 allows the request at all readings of the clock; undefined: it does not. */
const checkRejection = (
  current: Lease,
  { invocation }: Operation,
  readings: readonly TimeWindow[],
): string | undefined => {
  if (invocation.kind === 'read' || invocation.generation !== current.generation) return undefined
  const isOwn = invocation.holder === current.holder
  const expiresAt = Date.parse(current.expiresAt)
  switch (invocation.kind) {
    case 'release':
      return isOwn ? 'rejected the release of a lease that its sender held' : undefined
    case 'renew':
      return isOwn && readings.every(({ until }) => until < expiresAt)
        ? 'rejected the renewal of a lease that its sender held'
        : undefined
    case 'acquire':
      if (isOwn) return 'rejected the holder of the lease'
      return readings.some(({ from }) => from < expiresAt) ? undefined : 'rejected an acquire of a free slot'
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

/** Whether a body can show the state: a restart changes the expiry only. */
const canShow = (shown: Lease, state: State, { receivedAt }: Operation, clock: WitnessClock): boolean => {
  const { lease, held } = state
  const isSame =
    shown.generation === lease.generation && shown.holder === lease.holder && shown.acquiredAt === lease.acquiredAt
  if (!isSame || shown.expiresAt === lease.expiresAt) return isSame
  const restartedAt = Date.parse(shown.expiresAt) - (held?.ttlMs ?? 0)
  return findRestarts(state, receivedAt, clock).some(({ from, until }) => from <= restartedAt && restartedAt <= until)
}

const toObservedLease = ({ completion }: Operation): Lease | undefined =>
  completion && 'lease' in completion ? completion.lease : undefined

/**
 * Each operation that started after another of the same generation had ended, and shows a later expiry: each restart makes
 * the lease expire earlier.
 */
const findReturnedExpiries = (
  observations: readonly Observation[],
): { readonly earlier: Operation; readonly later: Operation }[] => {
  const pairs: { earlier: Operation; later: Operation }[] = []
  for (const [, group] of Map.groupBy(observations, ({ generation }) => generation)) {
    const shown = group.flatMap(({ operation }) => {
      const expiry = Date.parse(toObservedLease(operation)?.expiresAt ?? '')
      return Number.isNaN(expiry) ? [] : [{ operation, expiry }]
    })
    const byEnd = shown.toSorted((a, b) => a.operation.end - b.operation.end)
    let ended = 0
    let least: (typeof shown)[number] | undefined
    for (const { operation, expiry } of shown.toSorted((a, b) => a.operation.start - b.operation.start)) {
      for (let next = byEnd[ended]; next && next.operation.end < operation.start; next = byEnd[++ended]) {
        if (!least || next.expiry < least.expiry) least = next
      }
      if (least && least.expiry < expiry) pairs.push({ earlier: least.operation, later: operation })
    }
  }
  return pairs
}

/**
 * The write that created a generation, of several writes without a response: the earliest that can follow from the state
 * before and has the observed holder. A later one could show a real-time violation where there is none. If no operation
 * observed the generation and several writes could have created it, its state stays unknown.
 */
const findCandidateWrite = (
  writes: readonly Write[],
  seen: Lease | undefined,
  canFollow: (operation: Operation) => boolean,
): Write | undefined => {
  const fitting = writes.filter(({ operation }) => {
    const holder =
      'holder' in operation.invocation && operation.invocation.kind !== 'release' ? operation.invocation.holder : ''
    return (!seen || holder === seen.holder) && canFollow(operation)
  })
  const [first = writes[0]] = fitting
  return first && !seen && fitting.length > 1 ? { ...first, lease: undefined } : first
}

const findState = (created: ReadonlyMap<number, Write>, generation: number): State | undefined => {
  if (generation === 0) return NEVER_WRITTEN
  const write = created.get(generation)
  return write && toState(write)
}

/** The highest `acquiredAt` up to each generation. It stays unknown from a write with an unknown result to the next grant. */
const findTenures = (created: ReadonlyMap<number, Write>): ReadonlyMap<number, number | undefined> => {
  const tenures = new Map<number, number | undefined>([[0, Number.NEGATIVE_INFINITY]])
  let last: number | undefined = Number.NEGATIVE_INFINITY
  for (const [generation, { lease }] of [...created].toSorted(([a], [b]) => a - b)) {
    if (!lease) last = undefined
    else if (lease.acquiredAt !== '') last = Date.parse(lease.acquiredAt)
    tenures.set(generation, last)
  }
  return tenures
}

/** The writes by generation, where a write without a response fills a generation that has no other; and the violations found. */
const orderWrites = ({ writes, observations, indeterminate }: SlotHistory, context: SlotContext) => {
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
  const all = new Set([...created.keys(), ...seen.keys()])
  all.delete(0)
  let before = 0
  for (const generation of [...all].toSorted((a, b) => a - b)) {
    for (let missing = before + 1; missing <= generation; missing++) {
      if (created.has(missing)) continue
      const observer = seen.get(missing)
      const previous = findState(created, missing - 1)
      const write = findCandidateWrite(
        candidates.get(missing) ?? [],
        observer && toObservedLease(observer),
        operation => !previous || checkEffect(previous, operation, context) === undefined,
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

const checkSlot = (operations: readonly Operation[], clock: WitnessClock): Violation[] => {
  const slot = classifyOperations(operations)
  const start = operations.reduce((least, { sentAt }) => Math.min(least, sentAt), Number.POSITIVE_INFINITY)
  const tenures = new Map<number, number | undefined>()
  const context: SlotContext = { clock, start, lastAcquiredAt: generation => tenures.get(generation) }
  const { created, violations } = orderWrites(slot, context)
  for (const [generation, acquiredAt] of findTenures(created)) tenures.set(generation, acquiredAt)
  const add = (rule: Rule, detail: string | undefined, ...related: Operation[]) => {
    if (detail !== undefined) violations.push({ rule, detail, operations: related })
  }

  // Two writes that created the same generation are both checked against the generation before.
  const writes = [...new Set([...created.values(), ...slot.writes])]
  for (const { operation, generation } of writes) {
    const before = findState(created, generation - 1)
    if (before) add('effect', checkEffect(before, operation, context), operation)
  }
  for (const { operation, generation } of slot.observations) {
    const { completion } = operation
    add('status', checkStatus(operation, generation), operation)
    const state = findState(created, generation)
    const shown = toObservedLease(operation)
    if (state && shown && !canShow(shown, state, operation, clock))
      add('body', `differs from generation ${generation}`, operation)
    if (!shown || completion?.status !== 412) continue
    const from = Math.max(operation.sentAt, created.get(generation)?.operation.sentAt ?? 0)
    const next = created.get(generation + 1)?.operation
    const until = Math.min(operation.receivedAt, next?.completion ? next.receivedAt : Number.POSITIVE_INFINITY)
    add('rejection', checkRejection(shown, operation, clock.readings(from, until)), operation)
  }
  const detail = 'shows a state older than one shown by an operation that ended before it started'
  for (const { earlier, later } of findRealTimeViolations(writes, slot.observations)) {
    add('real-time', detail, earlier, later)
  }
  for (const { earlier, later } of findReturnedExpiries(slot.observations)) add('real-time', detail, earlier, later)
  return violations
}

/**
 * The violations of a history; none: it is linearizable, each slot could have executed one call at a time, each at an
 * instant between its start and its end. Finding such an order is NP-complete in general. Here each successful write has a
 * unique generation, so only one order is possible, and checking it takes O(n log n).
 */
export const checkLinearizability = (history: readonly Operation[], clock: WitnessClock = machineClock): Violation[] =>
  [...Map.groupBy(history, ({ slot }) => slot).values()].flatMap(operations => checkSlot(operations, clock))

/** The violation in one line, then each of its operations. */
export const describeViolation = ({ rule, detail, operations }: Violation): string =>
  [`${rule}: ${detail}`, ...operations.map(operation => `  ${JSON.stringify(operation)}`)].join('\n')

import type { LeaseState, WaitCondition } from '../lease/lease.ts'
import { findDisplaced } from '../lease/wait-limit.ts'

/** A slot's lease at a moment. */
export interface Observation {
  readonly lease: LeaseState | undefined
  /** The time of the slot. */
  readonly now: number
}

export interface WaitOptions {
  /** Identifies the token of the request. */
  readonly caller: string
  readonly condition: WaitCondition
  readonly maxMs: number
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
}

export type WaitEnd =
  | { readonly kind: 'condition-holds'; readonly observation: Observation }
  | { readonly kind: 'time-is-up' | 'aborted' | 'stopping' | 'too-many' }

export interface WaitsOptions {
  /** The slots in their order. Rejects if the database is not available. */
  readonly observe: (slots: readonly string[]) => Promise<readonly Observation[]>
  readonly hasEnded: (condition: WaitCondition, observation: Observation) => boolean
  /** Milliseconds until a held lease expires; undefined: not held. */
  readonly remainingMs: (observation: Observation) => number | undefined
  /** Milliseconds after which every slot with waiters is read again, because a notification can be lost. */
  readonly recheckMs: number
  readonly maxWaiters: number
}

interface Waiter {
  readonly condition: WaitCondition
  /** The number of the last read that started before the wait. Its result can be older than what the client knows. */
  readonly lastReadBefore: number
  readonly end: (end: WaitEnd) => void
}

/** The waiters of one slot. */
interface WaitedSlot {
  readonly waiters: Set<Waiter>
  expiryTimer: NodeJS.Timeout | undefined
}

/** Slots per statement. */
const MAX_CHUNK = 500
/** A lease has expired once its remaining time is over: a timer can be early by a millisecond. */
const TIMER_MARGIN_MS = 1

export type Waits = ReturnType<typeof createWaits>

/**
 * The clients of this process that wait for a change of a slot. A slot is read again when `onChanged` names it, when its lease
 * expires, and at least every `recheckMs`: one read serves all its waiters, and one statement reads many slots.
 */
export const createWaits = ({ observe, hasEnded, remainingMs, recheckMs, maxWaiters }: WaitsOptions) => {
  const slots = new Map<string, WaitedSlot>()
  /** Slots to read with the next statement. */
  const due = new Set<string>()
  let isReading = false
  let isStopping = false
  let size = 0
  /** The waiters of all slots by caller, the oldest first. */
  const byCaller = new Map<string, Set<Waiter>>()
  let readNumber = 0

  const leave = (caller: string, waiter: Waiter): void => {
    const own = byCaller.get(caller)
    if (!own?.delete(waiter)) return
    size -= 1
    if (own.size === 0) byCaller.delete(caller)
  }

  /** Ends a wait, so that one of `caller` can begin. False: there is none to end. */
  const displaceFor = (caller: string): boolean => {
    const counts = new Map(Array.from(byCaller, ([name, own]) => [name, own.size]))
    const displaced = findDisplaced(counts, caller)
    if (displaced === undefined) return false
    const [oldest] = byCaller.get(displaced) ?? []
    if (!oldest) return false
    // Now: the next wait can begin before this one has ended.
    leave(displaced, oldest)
    oldest.end({ kind: 'too-many' })
    return true
  }

  const apply = (slot: string, observation: Observation, number: number): void => {
    const waited = slots.get(slot)
    if (!waited) return
    for (const waiter of [...waited.waiters]) {
      if (waiter.lastReadBefore < number && hasEnded(waiter.condition, observation)) {
        waiter.end({ kind: 'condition-holds', observation })
      }
    }
    clearTimeout(waited.expiryTimer)
    const remaining = remainingMs(observation)
    if (waited.waiters.size === 0 || remaining === undefined || remaining === 0) return
    waited.expiryTimer = setTimeout(() => onChanged([slot]), remaining + TIMER_MARGIN_MS)
  }

  const readDue = async (): Promise<void> => {
    if (isReading) return
    isReading = true
    while (due.size > 0) {
      const chunk = [...due].slice(0, MAX_CHUNK)
      for (const slot of chunk) due.delete(slot)
      readNumber += 1
      const number = readNumber
      try {
        const observations = await observe(chunk)
        for (const [index, observation] of observations.entries()) apply(chunk[index] ?? '', observation, number)
      } catch {
        // The next recheck reads them. A client whose time is up reads the slot itself and gets the error.
      }
    }
    isReading = false
  }

  /** These slots may have changed. */
  const onChanged = (changed: Iterable<string>): void => {
    for (const slot of changed) if (slots.has(slot)) due.add(slot)
    void readDue()
  }

  const recheck = setInterval(() => onChanged(slots.keys()), recheckMs).unref()

  return {
    onChanged,
    /** Any slot may have changed. */
    onAnyChanged: () => onChanged(slots.keys()),

    countWaiters: (slot: string): number => slots.get(slot)?.waiters.size ?? 0,

    /** Resolves when the condition holds, after `maxMs`, or when the signal is aborted. */
    async wait(slot: string, { caller, condition, maxMs, signal }: WaitOptions): Promise<WaitEnd> {
      if (isStopping) return { kind: 'stopping' }
      if (signal.aborted) return { kind: 'aborted' }
      if (size >= maxWaiters && !displaceFor(caller)) return { kind: 'too-many' }
      const { promise, resolve } = Promise.withResolvers<WaitEnd>()
      const waiter: Waiter = { condition, lastReadBefore: readNumber, end: resolve }
      const waited = slots.get(slot) ?? { waiters: new Set(), expiryTimer: undefined }
      slots.set(slot, waited)
      waited.waiters.add(waiter)
      const own = byCaller.get(caller) ?? new Set()
      byCaller.set(caller, own.add(waiter))
      size += 1
      const timer = setTimeout(() => resolve({ kind: 'time-is-up' }), maxMs)
      const onAbort = () => resolve({ kind: 'aborted' })
      signal.addEventListener('abort', onAbort)
      // After the registration, so that no change is missed.
      onChanged([slot])
      const end = await promise
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
      waited.waiters.delete(waiter)
      leave(caller, waiter)
      if (waited.waiters.size === 0) {
        clearTimeout(waited.expiryTimer)
        slots.delete(slot)
      }
      return end
    },

    /** Ends all waits, and each later one immediately. */
    stop(): void {
      isStopping = true
      clearInterval(recheck)
      for (const { waiters } of slots.values()) for (const { end } of waiters) end({ kind: 'stopping' })
    },
  }
}

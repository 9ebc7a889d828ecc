import {
  includesGeneration,
  type KnownGenerations,
  type LeaseState,
  toRemainingMs,
  toWireLease,
} from './lease/lease.ts'
import type { LeaseReading, LeaseStatusOutcome, ObservedLease } from './lease-service.ts'

// How a host responds to a request with what its store has for a slot. `now` is the time of the slot.

export const toObservedLease = (current: LeaseState | undefined, now: number): ObservedLease => ({
  lease: toWireLease(current),
  remainingMs: toRemainingMs(current, now),
})

/** `known`: the generations that the reader has. */
export const toReading = (current: LeaseState | undefined, now: number, known: KnownGenerations = []): LeaseReading => {
  if (!current) return { kind: 'absent' }
  const isKnown = includesGeneration(known, current.generation)
  return { kind: isKnown ? 'not-modified' : 'lease', ...toObservedLease(current, now) }
}

export const toStatus = (current: LeaseState | undefined, now: number, waiters: number): LeaseStatusOutcome =>
  current ? { kind: 'lease', waiters, ...toObservedLease(current, now) } : { kind: 'absent', waiters }

import type { Lease } from '@pool/contract/lease'

/** What every state of a slot has. Times are milliseconds since the epoch by the clock of the slot (see `advanceClock`). */
interface SlotTimes {
  /** The start of the current or the last tenure. Strictly increases from tenure to tenure, so it identifies one. */
  readonly acquiredAt: number
  /** The time of the last write. The clock of the slot does not go back behind it. */
  readonly writtenAt: number
  readonly generation: number
}

/** A lease with a holder, expired or not. Its TTL is `expiresAt - writtenAt`. */
export interface HeldLease extends SlotTimes {
  readonly kind: 'held'
  readonly holder: string
  /** The first millisecond at which it has expired. Expiry is not an event: it only lets others acquire. */
  readonly expiresAt: number
  /** What the holder shows to readers; never empty. */
  readonly value?: string
}

export interface ReleasedLease extends SlotTimes {
  readonly kind: 'released'
}

/** The state of a slot's lease; undefined: the slot was never written. */
export type LeaseState = HeldLease | ReleasedLease

/** A write, fenced by the generation that the client last saw; 0: the slot was never written. */
export type LeaseWrite =
  | {
      readonly kind: 'acquire' | 'renew'
      readonly holder: string
      readonly ttlMs: number
      readonly generation: number
      /** Undefined: a renewal keeps that of the tenure. Empty: none. */
      readonly value?: string | undefined
    }
  | { readonly kind: 'release'; readonly holder: string; readonly generation: number }

/** A change of holder, or a new tenure of the same holder. */
export interface Transition {
  readonly event: 'acquired' | 'released'
  readonly by: string
  readonly from: string
  readonly to: string
}

export type RejectionReason = 'generation' | 'held' | 'not-holder' | 'expired'

export type Decision =
  | { readonly kind: 'granted'; readonly next: HeldLease; readonly transition: Transition | undefined }
  | { readonly kind: 'released'; readonly next: ReleasedLease; readonly transition: Transition }
  /** A release of a slot that was never written. */
  | { readonly kind: 'absent' }
  | { readonly kind: 'rejected'; readonly reason: RejectionReason }

/**
 * How far the generation jumps where writes may exist that this slot does not know: a slot taken over from a system that
 * may still be writing, or restored from a copy. More than anyone writes before it is noticed.
 */
export const GENERATION_JUMP = 2 ** 20

/** More than one object or one database row can commit. */
const MAX_WRITES_PER_MS = 10

/** The jump after the loss of all writes that were made in the last `lostMs` milliseconds. */
export const jumpAfterLoss = (lostMs: number): number =>
  GENERATION_JUMP + MAX_WRITES_PER_MS * Math.max(0, Math.ceil(lostMs))

/** A clock that is behind the last write by at most this is bridged: the slot keeps the time of that write. */
export const MAX_BRIDGED_MS = 60_000

export interface ClockReading {
  /** The time for the next decision. */
  readonly now: number
  /** The state to store, because the clock was set back; undefined: nothing to store. */
  readonly reanchored: LeaseState | undefined
}

/**
 * The clock of a slot: the wall clock, made monotonic. The clock of a machine can be set back, and a slot can move to a
 * machine whose clock is behind. Up to `MAX_BRIDGED_MS` the time of the slot stands still, so a lease is never shorter than
 * acknowledged. Beyond that the wall clock was wrong before, and waiting for it could block the slot for hours: the lease
 * starts again at the wall clock with its whole TTL. A wall clock that is set forward cannot be detected: it expires leases
 * early.
 */
export const advanceClock = (state: LeaseState | undefined, wallNow: number): ClockReading => {
  if (!state || wallNow >= state.writtenAt) return { now: wallNow, reanchored: undefined }
  if (state.writtenAt - wallNow <= MAX_BRIDGED_MS) return { now: state.writtenAt, reanchored: undefined }
  return { now: wallNow, reanchored: restartAt(state, wallNow) }
}

/** The same lease as if its last write had been at `now`: a holder gets its whole TTL again. */
export const restartAt = (state: LeaseState, now: number): LeaseState =>
  state.kind === 'held'
    ? { ...state, writtenAt: now, expiresAt: now + state.expiresAt - state.writtenAt }
    : { ...state, writtenAt: now }

export const isExpired = (lease: HeldLease, now: number): boolean => now >= lease.expiresAt

/**
 * The compare-and-set: decides whether a write succeeds (If-Match of RFC 9110 section 13.1.1). `now` is a reading of
 * `advanceClock`, and `current` the state after it.
 */
export const decide = (current: LeaseState | undefined, request: LeaseWrite, now: number): Decision => {
  if (request.kind === 'release' && !current) return { kind: 'absent' }
  const generation = current?.generation ?? 0
  if (request.generation !== generation) return { kind: 'rejected', reason: 'generation' }

  const held = current?.kind === 'held' ? current : undefined
  const ownLease = held?.holder === request.holder ? held : undefined
  const from = held?.holder ?? ''
  if (request.kind === 'release') {
    if (!ownLease) return { kind: 'rejected', reason: 'not-holder' }
    const transition = { event: 'released', by: request.holder, from, to: '' } as const
    const next: ReleasedLease = {
      kind: 'released',
      acquiredAt: ownLease.acquiredAt,
      writtenAt: now,
      generation: generation + 1,
    }
    return { kind: 'released', next, transition }
  }

  const isLive = held !== undefined && !isExpired(held, now)
  if (request.kind === 'renew' && !ownLease) return { kind: 'rejected', reason: 'not-holder' }
  if (request.kind === 'renew' && !isLive) return { kind: 'rejected', reason: 'expired' }
  if (isLive && !ownLease) return { kind: 'rejected', reason: 'held' }

  const { holder, ttlMs } = request
  const isRenewal = isLive && ownLease !== undefined
  // Later than any earlier tenure, even if the clock was set back since.
  const tenureStart = Math.max(now, (current?.acquiredAt ?? 0) + 1)
  const value = request.value ?? (isRenewal ? ownLease.value : undefined)
  const next: HeldLease = {
    kind: 'held',
    holder,
    acquiredAt: isRenewal ? ownLease.acquiredAt : tenureStart,
    writtenAt: now,
    expiresAt: now + ttlMs,
    generation: generation + 1,
    ...(value ? { value } : {}),
  }
  const transition = isRenewal ? undefined : ({ event: 'acquired', by: holder, from, to: holder } as const)
  return { kind: 'granted', next, transition }
}

/** The generations that a reader already has; `any`: every generation. Plain data, because it is sent to the object. */
export type KnownGenerations = 'any' | readonly number[]

export const includesGeneration = (known: KnownGenerations, generation: number): boolean =>
  known === 'any' || known.includes(generation)

/**
 * What ends a wait: `changed` is a generation that the reader does not know, or the expiry of the lease; `vacant` is a slot
 * that no client holds (never written, released or expired), so a renewal does not end the wait.
 */
export type WaitCondition = { readonly kind: 'changed'; readonly known: KnownGenerations } | { readonly kind: 'vacant' }

const isVacant = (current: LeaseState | undefined, now: number): boolean =>
  current?.kind !== 'held' || isExpired(current, now)

/**
 * Whether a waiting reader must get a response. A slot that was never written counts as generation 0, so a standby can
 * wait for the first lease.
 */
export const endsWait = (condition: WaitCondition, current: LeaseState | undefined, now: number): boolean => {
  if (condition.kind === 'vacant') return isVacant(current, now)
  const { known } = condition
  if (!current) return known === 'any' || !includesGeneration(known, 0)
  return !includesGeneration(known, current.generation) || (current.kind === 'held' && isExpired(current, now))
}

/** Milliseconds until a held lease expires; 0 if it has expired. Undefined: no client holds it. */
export const toRemainingMs = (current: LeaseState | undefined, now: number): number | undefined =>
  current?.kind === 'held' ? Math.max(0, current.expiresAt - now) : undefined

const toRfc3339 = (ms: number): string => new Date(ms).toISOString()

/** The lease in its wire format. A slot that was never written looks released, with generation 0. */
export const toWireLease = (state: LeaseState | undefined): Lease =>
  state?.kind === 'held'
    ? {
        holder: state.holder,
        acquiredAt: toRfc3339(state.acquiredAt),
        expiresAt: toRfc3339(state.expiresAt),
        generation: state.generation,
        ...(state.value === undefined ? {} : { value: state.value }),
      }
    : { holder: '', acquiredAt: '', expiresAt: '', generation: state?.generation ?? 0 }

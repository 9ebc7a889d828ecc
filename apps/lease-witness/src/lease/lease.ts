import type { Lease } from '@pool/contract/lease'

/** A lease with a holder, expired or not. Times are milliseconds since the epoch on the Durable Object's clock. */
export interface HeldLease {
  readonly kind: 'held'
  readonly holder: string
  readonly acquiredAt: number
  readonly renewedAt: number
  /** The first millisecond at which it has expired. Expiry is not an event: it only lets others acquire. */
  readonly expiresAt: number
  readonly generation: number
}

export interface ReleasedLease {
  readonly kind: 'released'
  readonly generation: number
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

export const isExpired = (lease: HeldLease, now: number): boolean => now >= lease.expiresAt

/** The compare-and-set: decides whether a write succeeds (If-Match of RFC 9110 section 13.1.1). */
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
    return { kind: 'released', next: { kind: 'released', generation: generation + 1 }, transition }
  }

  const isLive = held !== undefined && !isExpired(held, now)
  if (request.kind === 'renew' && !ownLease) return { kind: 'rejected', reason: 'not-holder' }
  if (request.kind === 'renew' && !isLive) return { kind: 'rejected', reason: 'expired' }
  if (isLive && !ownLease) return { kind: 'rejected', reason: 'held' }

  const { holder, ttlMs } = request
  const isRenewal = isLive && ownLease !== undefined
  const next: HeldLease = {
    kind: 'held',
    holder,
    acquiredAt: isRenewal ? ownLease.acquiredAt : now,
    renewedAt: now,
    expiresAt: now + ttlMs,
    generation: generation + 1,
  }
  const transition = isRenewal ? undefined : ({ event: 'acquired', by: holder, from, to: holder } as const)
  return { kind: 'granted', next, transition }
}

/** The generations that a reader already has; `any`: every generation. Plain data, because it is sent to the object. */
export type KnownGenerations = 'any' | readonly number[]

export const includesGeneration = (known: KnownGenerations, generation: number): boolean =>
  known === 'any' || known.includes(generation)

/**
 * Whether a waiting reader must get a response: the generation is not among the known ones, or the known lease has
 * expired. A slot that was never written counts as generation 0, so a standby can wait for the first lease.
 */
export const hasChanged = (current: LeaseState | undefined, known: KnownGenerations, now: number): boolean => {
  if (!current) return known === 'any' || !includesGeneration(known, 0)
  return !includesGeneration(known, current.generation) || (current.kind === 'held' && isExpired(current, now))
}

const toRfc3339 = (ms: number): string => new Date(ms).toISOString()

/** The lease in its wire format. A slot that was never written looks released, with generation 0. */
export const toWireLease = (state: LeaseState | undefined): Lease =>
  state?.kind === 'held'
    ? {
        holder: state.holder,
        acquiredAt: toRfc3339(state.acquiredAt),
        expiresAt: toRfc3339(state.expiresAt),
        generation: state.generation,
      }
    : { holder: '', acquiredAt: '', expiresAt: '', generation: state?.generation ?? 0 }

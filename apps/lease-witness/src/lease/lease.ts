import type { Lease } from '@pool/contract/lease'

/** A lease that somebody holds or held. Times in milliseconds since the epoch, on the clock of the slot's object. */
export interface Held {
  readonly kind: 'held'
  readonly holder: string
  readonly acquiredAt: number
  readonly renewedAt: number
  /** The first moment at which it is no longer valid. Nothing happens then: others may acquire it, that is all. */
  readonly expiresAt: number
  readonly generation: number
}

export interface Released {
  readonly kind: 'released'
  readonly generation: number
}

/** What a slot's object holds; undefined: the slot was never written. */
export type Current = Held | Released

/** A write, fenced by the generation that its sender last saw; 0: the slot was never written. */
export type LeaseRequest =
  | {
      readonly kind: 'acquire' | 'renew'
      readonly holder: string
      readonly ttlMs: number
      readonly generation: number
    }
  | { readonly kind: 'release'; readonly holder: string; readonly generation: number }

/** A change of who holds the slot, or of since when. */
export interface Change {
  readonly event: 'acquired' | 'released'
  readonly by: string
  readonly from: string
  readonly to: string
}

export type Decision =
  | { readonly kind: 'granted'; readonly next: Held; readonly change: Change | undefined }
  | { readonly kind: 'released'; readonly next: Released; readonly change: Change }
  /** A release of a slot that was never written. */
  | { readonly kind: 'absent' }
  | { readonly kind: 'refused'; readonly why: 'generation' | 'held' | 'not-holder' | 'expired' }

export const isExpired = (current: Held, now: number): boolean => now >= current.expiresAt

/** Who may write what: the whole of the compare-and-set (seed contract, interface B; If-Match of RFC 9110 section 13.1.1). */
export const decide = (current: Current | undefined, request: LeaseRequest, now: number): Decision => {
  if (request.kind === 'release' && !current) return { kind: 'absent' }
  const generation = current?.generation ?? 0
  if (request.generation !== generation) return { kind: 'refused', why: 'generation' }

  const held = current?.kind === 'held' ? current : undefined
  const own = held?.holder === request.holder ? held : undefined
  const from = held?.holder ?? ''
  if (request.kind === 'release') {
    if (!own) return { kind: 'refused', why: 'not-holder' }
    const change = { event: 'released', by: request.holder, from, to: '' } as const
    return { kind: 'released', next: { kind: 'released', generation: generation + 1 }, change }
  }

  const isLive = held !== undefined && !isExpired(held, now)
  if (request.kind === 'renew' && !own) return { kind: 'refused', why: 'not-holder' }
  if (request.kind === 'renew' && !isLive) return { kind: 'refused', why: 'expired' }
  if (isLive && !own) return { kind: 'refused', why: 'held' }

  const { holder, ttlMs } = request
  const isKept = isLive && own !== undefined
  const next: Held = {
    kind: 'held',
    holder,
    acquiredAt: isKept ? own.acquiredAt : now,
    renewedAt: now,
    expiresAt: now + ttlMs,
    generation: generation + 1,
  }
  return { kind: 'granted', next, change: isKept ? undefined : { event: 'acquired', by: holder, from, to: holder } }
}

const rfc3339 = (ms: number): string => new Date(ms).toISOString()

/** The lease as it goes over the wire. A slot that was never written shows as released, of generation 0. */
export const shown = (current: Current | undefined): Lease =>
  current?.kind === 'held'
    ? {
        holder: current.holder,
        acquiredAt: rfc3339(current.acquiredAt),
        expiresAt: rfc3339(current.expiresAt),
        generation: current.generation,
      }
    : { holder: '', acquiredAt: '', expiresAt: '', generation: current?.generation ?? 0 }

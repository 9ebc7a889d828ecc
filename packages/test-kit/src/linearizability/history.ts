import type { Lease } from '@pool/contract/lease'

export type Asked =
  | { readonly kind: 'read'; readonly known?: number }
  | { readonly kind: 'acquire' | 'renew'; readonly holder: string; readonly generation: number; readonly ttlMs: number }
  | { readonly kind: 'release'; readonly holder: string; readonly generation: number }

/** What came back. A 503 is none of these: whether its write was made is not known. */
export type Told =
  | { readonly status: 200 | 412; readonly lease: Lease }
  | { readonly status: 304; readonly generation: number }
  | { readonly status: 204 | 404 }

/** One call as its client saw it. Clients have one call under way at a time. */
export interface Operation {
  readonly slot: string
  readonly asked: Asked
  /** Absent: no answer, so a write may have been made or not, at any time since its start. */
  readonly told?: Told
  /** On a clock that never goes back: the order of calls is told by it. */
  readonly start: number
  readonly end: number
  /** On the clock that the witness goes by, in milliseconds since the epoch: what it decided is told by it. */
  readonly sentAt: number
  readonly answeredAt: number
}

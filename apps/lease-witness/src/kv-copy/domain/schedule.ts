import type { Current } from '../../lease/lease.ts'

/** Workers KV takes one write a second to a key. */
const BETWEEN_COPIES_MS = 1_000
const BETWEEN_RENEWALS_MS = 60_000
const LONGEST_RETRY_MS = 60_000

/** Where the copy in Workers KV stands. Times in milliseconds since the epoch. */
export interface CopyState {
  /** When a write to it last landed. */
  readonly copiedAt?: number
  /** When the next one is due; absent: it is up to date. */
  readonly dueAt?: number
}

/**
 * When a change at `now` has to be copied: at once when the holder has changed, at most once a minute on renewals (a
 * write to KV costs five times a lease's own, and a small plan has a thousand a day). Nothing due sooner is put off.
 */
export const copyDueAt = ({ copiedAt, dueAt }: CopyState, change: 'transition' | 'renewal', now: number): number => {
  const pause = change === 'transition' ? BETWEEN_COPIES_MS : BETWEEN_RENEWALS_MS
  const due = copiedAt === undefined ? now : Math.max(now, copiedAt + pause)
  return Math.min(dueAt ?? Number.POSITIVE_INFINITY, due)
}

/** What a copy of `before` missed when the slot has come to `after`. */
export const changeBetween = (before: Current, after: Current): 'transition' | 'renewal' => {
  const isSameTenure =
    before.kind === 'held' &&
    after.kind === 'held' &&
    before.holder === after.holder &&
    before.acquiredAt === after.acquiredAt
  return isSameTenure ? 'renewal' : 'transition'
}

/** Milliseconds until try number `failures` + 1. `chance` in [0, 1) spreads the slots that failed together. */
export const retryDelay = (failures: number, chance: number): number =>
  Math.min(1_000 * 2 ** Math.min(failures - 1, 16), LONGEST_RETRY_MS) * (0.5 + chance / 2)

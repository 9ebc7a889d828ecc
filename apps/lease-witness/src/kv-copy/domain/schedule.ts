import type { LeaseState } from '../../lease/lease.ts'

/** Limit of Workers KV: one write per second to the same key. */
const MIN_COPY_INTERVAL_MS = 1_000
const MIN_RENEWAL_COPY_INTERVAL_MS = 60_000
const MAX_RETRY_MS = 60_000

/** Progress of the copy in Workers KV. Times are milliseconds since the epoch. */
export interface CopyState {
  /** When the last write succeeded. */
  readonly copiedAt?: number
  /** When the next write is due; absent: the copy is up to date. */
  readonly dueAt?: number
}

/**
 * When a change at `now` must be copied: immediately after a transition, at most once a minute for renewals (a KV write
 * costs five times as much as the lease's own write, and the free plan allows a thousand a day). Never later than the
 * write that is already due.
 */
export const copyDueAt = ({ copiedAt, dueAt }: CopyState, change: 'transition' | 'renewal', now: number): number => {
  const interval = change === 'transition' ? MIN_COPY_INTERVAL_MS : MIN_RENEWAL_COPY_INTERVAL_MS
  const due = copiedAt === undefined ? now : Math.max(now, copiedAt + interval)
  return Math.min(dueAt ?? Number.POSITIVE_INFINITY, due)
}

/** Whether only renewals or a transition are missing in a copy of `before`, now that the lease is `after`. */
export const classifyChange = (before: LeaseState, after: LeaseState): 'transition' | 'renewal' => {
  const isSameTenure =
    before.kind === 'held' &&
    after.kind === 'held' &&
    before.holder === after.holder &&
    before.acquiredAt === after.acquiredAt
  return isSameTenure ? 'renewal' : 'transition'
}

/** The pause before the next attempt, in milliseconds. `jitter` in [0, 1) spreads slots that failed at the same time. */
export const retryDelayMs = (failures: number, jitter: number): number =>
  Math.min(1_000 * 2 ** Math.min(failures - 1, 16), MAX_RETRY_MS) * (0.5 + jitter / 2)

import { isExpired, type LeaseState } from '../../lease/lease.ts'

/** Limit of Workers KV: one write per second to the same key. */
const MIN_COPY_INTERVAL_MS = 1_000
/** Of a copy under one key. A KV write costs five times as much as the lease's own write. */
const MAX_RENEWAL_LAG_MS = 600_000
const MAX_RETRY_MS = 60_000
/** Cloudflare documents that other locations can see an older value of Workers KV for 60 s or more. */
export const KV_LAG_MS = 120_000
/** Of one isolate. More KV writes at a time would delay the requests that follow the changes of many slots. */
const MAX_COPIES_PER_SECOND = 50
/**
 * After this, a KV write that was abandoned no longer takes effect: the platform allows no call of an object to run longer
 * than 15 minutes.
 */
const SETTLE_MS = 15 * 60_000

/**
 * The records in Workers KV that a slot has taken over from another system, by key: to recognize them when they are read
 * again, and because the copy has the same keys. Empty where there was none.
 */
export type TakenRecords = Readonly<Record<string, string>>

/** Progress of the copy in Workers KV. Times are milliseconds since the epoch. */
export interface CopyState {
  /** When the last write succeeded. */
  readonly copiedAt?: number
  /** When the next write is due; absent: the copy is up to date. */
  readonly dueAt?: number
  /** After a failure: no attempt before this time. */
  readonly retryAt?: number
  /** When a write was abandoned that may still take effect, even after later ones. */
  readonly abandonedAt?: number
  /** Present: another system may still write. The key of the copy is always among its keys. */
  readonly takenRecords?: TakenRecords
}

/** The longest lag of a renewal in the copy. With more keys it is longer, so that copies cost the same. */
export const renewalLagMs = ({ takenRecords = {} }: CopyState): number =>
  MAX_RENEWAL_LAG_MS * Math.max(1, Object.keys(takenRecords).length)

/**
 * By how much the expiry in a copy of the lease is later than that of the lease: a holder that renews is held in KV until
 * the next copy can be read everywhere.
 */
export const expiryExtensionMs = (lease: LeaseState, lagMs: number, now: number): number =>
  lagMs === 0 || lease.kind === 'released' || isExpired(lease, now)
    ? 0
    : Math.max(0, now + lagMs + KV_LAG_MS - lease.expiresAt)

/** Spreads the copies of slots whose leases change at the same time. One for an isolate. */
export class CopyPace {
  #nextAt = 0
  #lastNow = 0

  /** The jitter of a copy for `copyDueAt`: `random` in [0, 1), or more while there is a backlog. */
  nextJitter(now: number, random: number): number {
    // A clock that was ahead leaves a backlog that does not exist.
    const start = now < this.#lastNow ? now : Math.max(this.#nextAt, now)
    this.#lastNow = now
    this.#nextAt = start + 1_000 / MAX_COPIES_PER_SECOND
    return Math.max(random, (this.#nextAt - now) / MIN_COPY_INTERVAL_MS)
  }
}

/**
 * When a change at `now` must be copied: one to two seconds after a transition, later only if many slots change at the same
 * time; and nine to ten minutes after the last copy for renewals, per key. A copy that is already due in time is not moved.
 * `jitter` in [0, 1), for a transition also above, spreads slots that change at the same time, so that their copies do not
 * delay requests.
 */
export const copyDueAt = (state: CopyState, change: 'transition' | 'renewal', now: number, jitter: number): number => {
  const { copiedAt, dueAt = Number.POSITIVE_INFINITY } = state
  // A clock that was ahead may have stored later times, here and below.
  const retryAt = Math.min(state.retryAt ?? 0, now + MAX_RETRY_MS)
  const isUrgent = change === 'transition' || copiedAt === undefined
  const latest = now + (isUrgent ? 2 * MIN_COPY_INTERVAL_MS : renewalLagMs(state))
  if (dueAt <= latest) return Math.max(dueAt, retryAt)
  if (isUrgent) return Math.max(Math.min(dueAt, Math.ceil(now + MIN_COPY_INTERVAL_MS * (1 + jitter))), retryAt)
  const due = Math.ceil(copiedAt + renewalLagMs(state) * (0.9 + jitter / 10))
  return Math.max(now, Math.min(due, latest), retryAt)
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

/** The state after the copy of `before` was written at `now`, when the lease has become `after`. */
export const afterCopy = (
  { abandonedAt, takenRecords }: CopyState,
  before: LeaseState,
  after: LeaseState,
  now: number,
  jitter: number,
): CopyState => {
  const settledAt = (abandonedAt ?? Number.NEGATIVE_INFINITY) + SETTLE_MS
  const copied = {
    copiedAt: now,
    ...(takenRecords ? { takenRecords } : {}),
    ...(abandonedAt !== undefined && settledAt > now ? { abandonedAt } : {}),
  }
  const isCurrent = before.generation === after.generation && before.writtenAt === after.writtenAt
  if (!isCurrent) return { ...copied, dueAt: copyDueAt(copied, classifyChange(before, after), now, jitter) }
  // Written once more, in case the abandoned write takes effect later.
  return settledAt > now ? { ...copied, dueAt: settledAt } : copied
}

/** The state after a write failed at `now`, or was abandoned because it took too long. */
export const afterFailure = (
  state: CopyState,
  { failures, wasAbandoned }: { readonly failures: number; readonly wasAbandoned: boolean },
  now: number,
  jitter: number,
): CopyState => {
  const retryAt = now + Math.ceil(retryDelayMs(failures, jitter))
  return { ...state, dueAt: retryAt, retryAt, ...(wasAbandoned ? { abandonedAt: now } : {}) }
}

/** The pause before the next attempt, in milliseconds. `jitter` in [0, 1) spreads slots that failed at the same time. */
export const retryDelayMs = (failures: number, jitter: number): number =>
  Math.min(1_000 * 2 ** Math.min(failures - 1, 16), MAX_RETRY_MS) * (0.5 + jitter / 2)

import { WAIT } from '@pool/contract/lease'
import { type ElectionDurations, JITTER_FACTOR } from './durations.ts'
import { elapsedMs, type Instant, msUntil, type Timeout } from './elapsed-time.ts'

/**
 * The rules of a leader election: what a candidate does next, and what a result means. Without I/O: the time and random
 * numbers are arguments.
 */

export interface ElectionRules extends ElectionDurations {
  /** The holder name of this candidate. */
  readonly identity: string
  /** No other candidate can have this name, so every lease with it is of this one. */
  readonly isUnique: boolean
  /**
   * Renewals are sent when the monotonic clock, divided by the retry period, has this remainder: electors of one process
   * with the same phase renew at the same time. Undefined: each renews a retry period after its last renewal, with jitter.
   */
  readonly renewalPhaseMs?: number | undefined
}

/** A lease as one response showed it. */
export interface ObservedLease {
  /** Empty if no client holds it. */
  readonly holder: string
  /** Identifies the tenure of the holder. */
  readonly acquiredAt: string
  /** 0: the slot was never written. */
  readonly generation: number
  /** Milliseconds until it expires, when the witness sent the response. 0: it has expired, or no client holds it. */
  readonly remainingMs: number
  /** What the holder shows to readers. Absent: nothing. */
  readonly value?: string | undefined
}

/** The time from winning the lease to the stop. It does not continue after its deadline, even if the lease is renewed. */
export interface Tenure {
  readonly acquiredAt: string
  /** The generation at the start. Constant during the tenure, above that of every earlier tenure of the slot. */
  readonly fencingToken: number
  /** The current generation, for the next write. */
  readonly generation: number
  /** The leader stops at this time. */
  readonly deadline: Timeout
  /** The lease does not expire before this time. */
  readonly expiry: Timeout
}

export type StopReason =
  /** The deadline has passed without a successful renewal. */
  | 'renew-deadline'
  /** Another client holds the lease, or it was released. */
  | 'lease-lost'
  /** The candidate was cancelled, or handed over. */
  | 'cancelled'

interface Standby {
  readonly kind: 'standby'
  /** `read`: check the lease. `wait`: wait until it is vacant. */
  readonly next: 'read' | 'wait' | 'acquire'
  readonly at: Timeout
  readonly generation: number
}

interface Leading {
  readonly kind: 'leading'
  readonly next: 'renew' | 'read'
  readonly at: Timeout
  /** When the last write was sent. The next one follows a retry period later. */
  readonly writtenAt: Instant
  readonly tenure: Tenure
}

interface Stopping {
  readonly kind: 'stopping'
  readonly reason: StopReason
  readonly tenure: Tenure
}

export type ElectionState = (Standby | Leading | Stopping) & {
  /** `acquiredAt` of the last tenure that this candidate has acquired and not released. Empty: none. */
  readonly ownTenure: string
  /** The number of races for a vacant lease that this candidate has lost since it last led. */
  readonly lostRaces: number
  /** The number of requests of this standby in a row that had no effect or no response. */
  readonly failures: number
  /** The longest wait that the path to the witness allows, as far as it is known. */
  readonly pathSeconds: number
}

export type Action =
  | { readonly kind: 'sleep'; readonly ms: number }
  | { readonly kind: 'read' | 'wait' | 'acquire' | 'renew'; readonly generation: number; readonly timeoutMs: number }
  | { readonly kind: 'stop'; readonly reason: StopReason; readonly tenure: Tenure }

export type Result =
  /** A write took effect. */
  | { readonly kind: 'granted'; readonly lease: ObservedLease }
  /** A read, or a write that was rejected with the current lease. `waited`: the witness granted the wait of a read. */
  | { readonly kind: 'observed'; readonly lease: ObservedLease; readonly waited: boolean }
  /** A write without a response, or with an error of the server: it may take effect, now or later. */
  | { readonly kind: 'unknown'; readonly retryAfterMs: number }
  /**
   * A request without effect: a read without a response, or a rejection that does not show the lease. `timedOut`: not even an
   * error arrived in time.
   */
  | { readonly kind: 'failed'; readonly retryAfterMs: number; readonly timedOut?: true }

/** The first candidates for a vacant lease send their requests within this part of a retry period, */
const MIN_RACE_WINDOW = 1 / 50
/** and after some lost races, which show that there are many of them, within this part. */
const MAX_RACE_WINDOW = 1 / 4
/** A wait that ran for this long had reached the witness: what ended it is a limit of the path, not a failure. */
const MIN_WAITED_MS = 1_000
/** The shortest wait that is tried on a path with such a limit. */
const MIN_PATH_SECONDS = 3
/** A renewal is sent up to this part of a retry period early, so that candidates do not stay in step. */
const RENEWAL_JITTER = 0.1

const at = (since: Instant, ms = 0): Timeout => ({ since, ms })

/**
 * Whether this candidate may act on a lease with its name. The witness grants a second candidate of one name what the first
 * one holds, so of a name that is not unique only a lease counts that a response has granted.
 */
export const isOwn = (
  { identity, isUnique }: Pick<ElectionRules, 'identity' | 'isUnique'>,
  { ownTenure }: Pick<ElectionState, 'ownTenure'>,
  { holder, remainingMs, acquiredAt }: ObservedLease,
): boolean => remainingMs > 0 && holder === identity && (isUnique || acquiredAt === ownTenure)

export const createElection = (now: Instant, pauseMs = 0, ownTenure = ''): ElectionState => ({
  kind: 'standby',
  next: 'read',
  at: at(now, pauseMs),
  generation: 0,
  ownTenure,
  lostRaces: 0,
  failures: 0,
  pathSeconds: WAIT.max,
})

/**
 * The time for a response. A leader whose every response takes longer than half of its deadline cannot keep the lease; one
 * that loses a single response has the other half to read and renew.
 */
export const toTimeoutMs = ({ renewDeadline, retryPeriod }: ElectionDurations, failures = 0): number =>
  Math.min(renewDeadline, Math.max(retryPeriod, renewDeadline / 2) * 2 ** failures)

/** How long a standby asks to wait: a connection that is silently dead is noticed one timeout later. */
export const toWaitSeconds = (
  { leaseDuration }: ElectionDurations,
  { pathSeconds }: Pick<ElectionState, 'pathSeconds'>,
): number => Math.min(WAIT.max, pathSeconds, Math.ceil(leaseDuration / 1_000))

export const hasEnded = ({ deadline }: Tenure, now: Instant): boolean => msUntil(deadline, now) <= 0

/** What to do now. Call it again after a sleep. */
export const decide = (rules: ElectionRules, state: ElectionState, now: Instant): Action => {
  if (state.kind === 'stopping') return { kind: 'stop', reason: state.reason, tenure: state.tenure }
  const waitMs = msUntil(state.at, now)
  if (state.kind === 'standby') {
    if (waitMs > 0) return { kind: 'sleep', ms: waitMs }
    const waitsMs = state.next === 'wait' ? toWaitSeconds(rules, state) * 1_000 : 0
    // A later grant does not start a tenure. An earlier timeout leaves a lease that no candidate acts on.
    const timeoutMs = state.next === 'acquire' ? rules.renewDeadline : waitsMs + toTimeoutMs(rules, state.failures)
    return { kind: state.next, generation: state.generation, timeoutMs }
  }
  const { tenure } = state
  const leftMs = msUntil(tenure.deadline, now)
  if (leftMs <= 0) return { kind: 'stop', reason: 'renew-deadline', tenure }
  if (waitMs > 0) return { kind: 'sleep', ms: Math.min(waitMs, leftMs) }
  return { kind: state.next, generation: tenure.generation, timeoutMs: Math.min(toTimeoutMs(rules), leftMs) }
}

/**
 * How long a lease is valid, counted from before the request. The witness measures `remainingMs` between the request and
 * the response, so the lease expires at this time or later.
 */
const toTimes = (rules: ElectionRules, lease: ObservedLease, sentAt: Instant): Pick<Tenure, 'deadline' | 'expiry'> => {
  const remainingMs = Math.min(lease.remainingMs, rules.leaseDuration)
  return {
    expiry: at(sentAt, remainingMs),
    deadline: at(sentAt, remainingMs - (rules.leaseDuration - rules.renewDeadline)),
  }
}

const later = (a: Timeout, b: Timeout, now: Instant): Timeout => (msUntil(a, now) > msUntil(b, now) ? a : b)

/**
 * The pause before the next attempt, counted from the start of the last one. It doubles with each failure, so that many
 * standbys do not keep a witness overloaded.
 */
const toRetry = (
  rules: ElectionRules,
  sentAt: Instant,
  now: Instant,
  { retryAfterMs = 0, failures = 0, random = 0 },
): Timeout => {
  const periodMs = Math.min(rules.leaseDuration, rules.retryPeriod * 2 ** failures) * (1 + JITTER_FACTOR * random)
  return at(now, Math.max(retryAfterMs, periodMs - elapsedMs(sentAt, now)))
}

const toRenewal = ({ retryPeriod, renewalPhaseMs }: ElectionRules, sentAt: Instant, random: number): Timeout => {
  if (renewalPhaseMs === undefined) return at(sentAt, retryPeriod * (1 - RENEWAL_JITTER * random))
  const sinceLastMs = (sentAt.monotonicMs - renewalPhaseMs) % retryPeriod
  return at(sentAt, retryPeriod - (sinceLastMs < 0 ? sinceLastMs + retryPeriod : sinceLastMs))
}

/** A request, as the election sees it. */
export interface Sent {
  readonly kind: 'read' | 'wait' | 'acquire' | 'renew'
  readonly generation: number
  /** Before the request was sent. */
  readonly sentAt: Instant
}

/** The state after a result. `random` is from 0 to 1. */
export const applyResult = (
  rules: ElectionRules,
  state: ElectionState,
  sent: Sent,
  result: Result,
  now: Instant,
  random: number,
): ElectionState => {
  const { sentAt } = sent
  const toStandby = (
    next: Standby['next'],
    when: Timeout,
    {
      generation = 0,
      ownTenure = state.ownTenure,
      lostRaces = state.lostRaces,
      failures = 0,
      pathSeconds = state.pathSeconds,
    } = {},
  ) => ({ kind: 'standby', next, at: when, generation, ownTenure, lostRaces, failures, pathSeconds }) as const

  if (state.kind === 'stopping') return state

  if (state.kind === 'leading') {
    const { tenure } = state
    const stop = (reason: StopReason): ElectionState => ({ ...state, kind: 'stopping', reason })
    // A process that was stopped past its deadline cannot know what happened in between.
    if (hasEnded(tenure, now)) return stop('renew-deadline')
    const writtenAt = sent.kind === 'renew' ? sentAt : state.writtenAt
    if (result.kind === 'unknown' || result.kind === 'failed') {
      // Half of the time that is left is for the next attempts, whatever the witness asks for.
      const retryAfterMs = Math.min(result.retryAfterMs, msUntil(tenure.deadline, now) / 2)
      if (result.kind === 'unknown') return { ...state, writtenAt, next: 'read', at: at(now, retryAfterMs) }
      // Without jitter: a leader has few attempts.
      return { ...state, writtenAt, at: toRetry(rules, sentAt, now, { retryAfterMs }) }
    }
    const { lease } = result
    if (!isOwn(rules, state, lease) || lease.acquiredAt !== tenure.acquiredAt) return stop('lease-lost')
    const times = toTimes(rules, lease, sentAt)
    const next: Tenure = {
      ...tenure,
      generation: Math.max(lease.generation, tenure.generation),
      deadline: later(times.deadline, tenure.deadline, now),
      expiry: later(times.expiry, tenure.expiry, now),
    }
    return { ...state, tenure: next, next: 'renew', writtenAt, at: toRenewal(rules, writtenAt, random) }
  }

  const failures = state.failures + 1
  // Counts as a lost race, so that the next attempt comes later if the witness fails quickly.
  if (result.kind === 'unknown')
    return toStandby('read', at(now, result.retryAfterMs), { lostRaces: state.lostRaces + 1, failures })
  if (result.kind === 'failed') {
    const { retryAfterMs } = result
    const ranMs = elapsedMs(sentAt, now)
    if (sent.kind === 'wait' && !result.timedOut && ranMs >= Math.min(MIN_WAITED_MS, rules.retryPeriod)) {
      // Only the witness asks for a pause: it stops, and the path is as it was.
      const pathSeconds =
        retryAfterMs > 0 ? state.pathSeconds : Math.max(MIN_PATH_SECONDS, Math.floor((ranMs * 3) / 4_000))
      return toStandby('wait', toRetry(rules, sentAt, now, { retryAfterMs }), { pathSeconds })
    }
    const retry = toRetry(rules, sentAt, now, { retryAfterMs, failures: state.failures, random })
    return toStandby(sent.kind === 'wait' ? 'wait' : 'read', retry, { failures })
  }
  const { lease } = result
  if (result.kind === 'granted') {
    const { acquiredAt, generation } = lease
    const tenure: Tenure = { acquiredAt, generation, fencingToken: generation, ...toTimes(rules, lease, sentAt) }
    if (hasEnded(tenure, now)) return toStandby('acquire', at(now), { generation, ownTenure: acquiredAt })
    const renewal = toRenewal(rules, sentAt, random)
    return {
      kind: 'leading',
      next: 'renew',
      at: renewal,
      writtenAt: sentAt,
      tenure,
      ownTenure: acquiredAt,
      lostRaces: 0,
      failures: 0,
      pathSeconds: state.pathSeconds,
    }
  }
  // Of an acquisition without a response, or of a tenure that ended early. A new write gives the tenure its own token.
  if (isOwn(rules, state, lease)) return toStandby('acquire', at(now), { generation: lease.generation })
  const lostRaces = state.lostRaces + (sent.kind === 'acquire' ? 1 : 0)
  if (lease.remainingMs > 0) {
    const hasWaited = sent.kind === 'wait' && result.waited
    const pause = sent.kind === 'wait' && !hasWaited ? toRetry(rules, sentAt, now, { random }) : at(now)
    // What ended a wait early may have happened once.
    const pathSeconds = state.pathSeconds + Number(hasWaited)
    return toStandby('wait', pause, { generation: lease.generation, lostRaces, pathSeconds })
  }
  const window = Math.min(MAX_RACE_WINDOW, MIN_RACE_WINDOW * 2 ** lostRaces)
  const start = at(now, rules.retryPeriod * window * random)
  return toStandby('acquire', start, { generation: lease.generation, lostRaces })
}

/** The state after a cancellation or the start of a handover: a leader stops. */
export const cancel = (state: ElectionState): ElectionState =>
  state.kind === 'leading' ? { ...state, kind: 'stopping', reason: 'cancelled' } : state

/** The state after the callbacks of a tenure: the lease is checked before anything else, `pauseMs` later. */
export const afterStop = (state: ElectionState, now: Instant, pauseMs: number): ElectionState => {
  // A release without a response can still take effect, and another candidate of this name acquire the lease.
  const isReleased = state.kind === 'stopping' && state.reason !== 'renew-deadline'
  return createElection(now, pauseMs, isReleased ? '' : state.ownTenure)
}

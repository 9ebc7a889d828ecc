import type { InjectedFault } from './errors-attributable.ts'
import type { Span } from './operations.ts'

/** A session of a service that had been in its state for some time when it was sampled. */
export interface BusySession {
  readonly pid: number
  readonly application: string
  /** As in pg_stat_activity: `active`, `idle in transaction`. */
  readonly state: string
  /** Type and name of the wait event; null: it did not wait. */
  readonly wait: string | null
  /** Milliseconds in this state. */
  readonly forMs: number
  readonly query: string
  /** The sessions that hold what it waits for; null: none. */
  readonly blockers: string | null
}

/** From the request to the response of the database. */
export interface SessionSample extends Span {
  /** Null: the database did not respond. */
  readonly sessions: readonly BusySession[] | null
}

export interface Evidence {
  /** What the replica logged as the reason of its 503. */
  readonly cause: string | undefined
  readonly samples: readonly SessionSample[]
  readonly injected: readonly InjectedFault[]
}

/**
 * A sample that took longer shows that the machine was too busy, if no fault lasted: its statement is short and waits for no
 * lock, and its connection has no faults.
 */
const SLOW_SAMPLE_MS = 1_000
/** A third of the time after which a statement of a replica counts as unanswered. */
const MIN_STALL_MS = 1_000
const MAX_LISTED = 4

const describeSession = ({ pid, application, state, wait, forMs, query, blockers }: BusySession): string =>
  `${pid} (${application}) ${state} for ${Math.round(forMs)} ms, ${wait ? `waits for ${wait}` : 'runs'}${blockers ? `, which is held by ${blockers}` : ''}: ${query}`

const describeSessions = (samples: readonly SessionSample[]): string => {
  if (samples.length === 0) return 'not sampled'
  const unanswered = samples.filter(({ start, end, sessions }) => !sessions || end - start > SLOW_SAMPLE_MS)
  const longest = new Map<string, BusySession>()
  for (const session of samples.flatMap(({ sessions }) => sessions ?? [])) {
    const key = `${session.pid} ${session.query}`
    if (session.forMs > (longest.get(key)?.forMs ?? 0)) longest.set(key, session)
  }
  const listed = [...longest.values()].sort((a, b) => b.forMs - a.forMs).slice(0, MAX_LISTED)
  const sessions = listed.length > 0 ? listed.map(describeSession).join(' | ') : 'none was busy'
  const slow =
    unanswered.length > 0 ? `; ${unanswered.length} of ${samples.length} samples had no response in time` : ''
  return sessions + slow
}

const describeFaults = (injected: readonly InjectedFault[], start: number): string =>
  injected
    .filter(({ startedAt }) => startedAt <= start)
    .slice(-MAX_LISTED)
    .map(({ fault, endedAt }) => {
      const agoMs = start - endedAt
      return `${fault.name} (replica ${fault.replica}) ${agoMs < 0 ? 'not ended' : `ended ${Math.round(agoMs)} ms before`}`
    })
    .join(', ') || 'none'

/** Whether the machine was too busy to respond to the observer itself for a part of the call that explains a timeout. */
export const wasMachineStalled = ({ start, end }: Span, samples: readonly SessionSample[]): boolean => {
  const stallMs = samples
    .filter(sample => sample.sessions && sample.end - sample.start > SLOW_SAMPLE_MS)
    .reduce((sum, sample) => sum + Math.max(0, Math.min(end, sample.end) - Math.max(start, sample.start)), 0)
  return stallMs >= MIN_STALL_MS
}

/** Why a call failed, as far as the replica, the database and the schedule show it. */
export const describeEvidence = ({ start, end }: Span, { cause, samples, injected }: Evidence): string => {
  const overlapping = samples.filter(sample => sample.end >= start && sample.start <= end)
  return `cause in the log: ${cause ?? 'none'}; sessions of the database: ${describeSessions(overlapping)}; last faults: ${describeFaults(injected, start)}`
}

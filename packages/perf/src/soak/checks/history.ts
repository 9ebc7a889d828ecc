import type { HistoryEntry } from '@pool/contract'
import type { NameOperation } from './operations.ts'

export interface ReplayRow {
  readonly id: number
  readonly subdomain: string
  readonly event: string
  readonly from: string
  readonly to: string
  readonly owner: string
  readonly requestId: string | null
  readonly detail: string | null
  /** Milliseconds since the epoch on the clock of the database. */
  readonly at: number
  readonly deletedRecords: HistoryEntry['deletedRecords'] | null
  readonly renewalCount: number | null
  /** Milliseconds since the epoch on the clock of the database. */
  readonly renewedUntil: number | null
}

export interface TableRow {
  readonly subdomain: string
  readonly state: 'reserved' | 'active'
  readonly owner: string
  readonly address: string | null
}

/** The reconciler's events change no state. Each may follow the event of a call that was made during the zone sync. */
const recordEvents = new Set(['published', 'withdrawn', 'failing', 'repaired'])

/** Replays the history, oldest first. Each transition must start in the state where the last one ended; the end is the table. */
export const findReplayMismatches = (history: readonly ReplayRow[], table: readonly TableRow[]): string[] => {
  const violations: string[] = []
  const states = new Map<string, { readonly state: string; readonly owner: string }>()
  for (const { id, subdomain, event, from, to, owner } of history) {
    if (recordEvents.has(event)) continue
    const before = states.get(subdomain)
    const state = before?.state ?? 'none'
    if (state !== from) violations.push(`history ${id}: ${subdomain} ${event} from ${from}, but its state was ${state}`)
    if (before && from !== 'none' && before.owner !== owner)
      violations.push(`history ${id}: ${subdomain} ${event} for ${owner}, but its owner was ${before.owner}`)
    if (to === 'none') states.delete(subdomain)
    else states.set(subdomain, { state: to, owner })
  }
  for (const { subdomain, state, owner } of table) {
    const replayed = states.get(subdomain)
    states.delete(subdomain)
    if (replayed?.state !== state || replayed.owner !== owner)
      violations.push(
        `${subdomain}: table ${state} by ${owner}, history ${replayed ? `${replayed.state} by ${replayed.owner}` : 'free'}`,
      )
  }
  for (const [subdomain, { state, owner }] of states)
    violations.push(`${subdomain}: table free, history ${state} by ${owner}`)
  return violations
}

const events = {
  grant: 'reserved',
  commitment: 'committed',
  update: 'updated',
  release: 'released',
  lift: 'cool-off-lifted',
} as const
/** Null: an earlier attempt without a response may have succeeded. */
const rejectedEvents = {
  'take-back': null,
  commit: 'committed',
  update: 'updated',
  renew: null,
  release: 'released',
} as const

/** Request ids are `<call id>.<attempt>`. */
export const parseOperationKey = (requestId: string): string => requestId.replace(/\.\d+$/, '')

/** Every acknowledged renewal of a reservation is in the entry that ended it. One without a response may be too. */
const findLostRenewals = (
  operations: readonly NameOperation[],
  history: readonly ReplayRow[],
  rows: ReadonlyMap<string, readonly ReplayRow[]>,
): string[] => {
  const rowsByName = Map.groupBy(history, ({ subdomain }) => subdomain)
  const renewals = Map.groupBy(
    operations.filter(operation => operation.kind === 'renewal'),
    ({ token }) => token,
  )
  return operations.flatMap(operation => {
    if (operation.kind !== 'grant') return []
    const { name, token, callId } = operation
    const acknowledged = renewals.get(token) ?? []
    const latestExpiry = Math.max(...acknowledged.map(({ expiresAt }) => expiresAt))
    const isComplete = (end: ReplayRow) =>
      (end.renewalCount ?? 0) >= acknowledged.length &&
      (acknowledged.length === 0 || (end.renewedUntil ?? 0) >= latestExpiry)
    const starts = (rows.get(callId) ?? []).filter(row => row.event === 'reserved' && row.subdomain === name)
    const ends = starts.map(start => rowsByName.get(name)?.find(row => row.id > start.id && row.from === 'reserved'))
    return ends.every(end => end && !isComplete(end)) && ends.length > 0
      ? [
          `lost: ${acknowledged.length} renewals of ${name} until ${latestExpiry}, but the history has ${JSON.stringify(ends)}`,
        ]
      : []
  })
}

/**
 * Every acknowledged write is in the history exactly once under its call id; a rejected one is absent. A reserve
 * can appear more than once, because a retry after the end of the reservation creates a new one. So can the end of a
 * cool-off, which has no idempotency key. Renewals are in the entry that ended the reservation.
 */
export const findLostWrites = (operations: readonly NameOperation[], history: readonly ReplayRow[]): string[] => {
  const rows = Map.groupBy(history, ({ requestId }) => parseOperationKey(requestId ?? ''))
  const lost = operations.flatMap(operation => {
    const { kind, name, callId } = operation
    const countRows = (event: string) =>
      (rows.get(callId) ?? []).filter(row => row.event === event && row.subdomain === name).length
    if (kind === 'rejection') {
      const { action, status } = operation
      const event = rejectedEvents[action]
      return event !== null && countRows(event) > 0
        ? [`rejected but applied: ${action} of ${name} (${callId}) got ${status}`]
        : []
    }
    if (kind === 'renewal' || kind === 'unanswered-commit') return []
    if ('isAnswered' in operation && !operation.isAnswered) return []
    const count = countRows(events[kind])
    if (count === 0) return [`lost: ${name} ${events[kind]} for ${callId}, but the history has no such event`]
    const isIdempotent = kind === 'commitment' || kind === 'update' || kind === 'release'
    return isIdempotent && count > 1 ? [`applied ${count} times: ${name} ${events[kind]} for ${callId}`] : []
  })
  return [...lost, ...findLostRenewals(operations, history, rows)]
}

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
  renewal: 'renewed',
  commitment: 'committed',
  update: 'updated',
  release: 'released',
  lift: 'cool-off-lifted',
} as const
/**
 * Null: an earlier attempt without a response may have succeeded. A renewal has no idempotency key, and a reservation can
 * expire before it is repeated.
 */
const rejectedEvents = {
  'take-back': null,
  commit: 'committed',
  update: 'updated',
  renew: null,
  release: 'released',
} as const

/** Request ids are `<idempotency key>.<attempt>`. */
export const parseOperationKey = (requestId: string): string => requestId.replace(/\.\d+$/, '')

/**
 * Every acknowledged write is in the history exactly once under its idempotency key; a rejected one is absent.
 * A reserve can appear more than once, because a retry after the end of the reservation creates a new one. So can a renewal,
 * and the end of a cool-off, which have no idempotency key.
 */
export const findLostWrites = (operations: readonly NameOperation[], history: readonly ReplayRow[]): string[] => {
  const rows = Map.groupBy(history, ({ requestId }) => parseOperationKey(requestId ?? ''))
  return operations.flatMap(operation => {
    const { kind, name, idempotencyKey } = operation
    const countRows = (event: string) =>
      (rows.get(idempotencyKey) ?? []).filter(row => row.event === event && row.subdomain === name).length
    if (kind === 'rejection') {
      const { action, status } = operation
      const event = rejectedEvents[action]
      return event !== null && countRows(event) > 0
        ? [`rejected but applied: ${action} of ${name} (${idempotencyKey}) got ${status}`]
        : []
    }
    if (kind === 'unanswered-commit' || ('isAnswered' in operation && !operation.isAnswered)) return []
    const count = countRows(events[kind])
    if (count === 0) return [`lost: ${name} ${events[kind]} for ${idempotencyKey}, but the history has no such event`]
    const isIdempotent = kind === 'commitment' || kind === 'update' || kind === 'release'
    return isIdempotent && count > 1 ? [`applied ${count} times: ${name} ${events[kind]} for ${idempotencyKey}`] : []
  })
}

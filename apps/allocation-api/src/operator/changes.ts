import type { Sql } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/time'
import type { ChangeState } from './domain/change.ts'

export interface ChangesOptions {
  readonly timeoutMs: number
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number
}

/**
 * How many of the newest entries of a history are counted. An entry gets its id before its transaction commits, so a later one
 * can be seen first; the count shows the earlier one.
 */
const COUNTED_ENTRIES = 1_000

/** Milliseconds for which one read serves every stream of this process. */
export const CHANGE_INTERVAL_MS = 1_000

/**
 * Reads the state of each topic: numbers and hashes of small tables, so that a change of any replica shows. Without a stream,
 * nothing is read.
 */
export const createChangeReader = (sql: Sql, { timeoutMs, now }: ChangesOptions) => {
  let latest: { readonly at: number; readonly state: Promise<ChangeState> } | undefined

  const lastEntries = (table: 'allocation_history' | 'deployment_history') => sql`(
    select newest.id || '.' || (select count(*) from ${sql(table)} h where h.id > newest.id - ${COUNTED_ENTRIES})
    from (select coalesce(max(id), 0) as id from ${sql(table)}) newest)`

  const read = async (): Promise<ChangeState> => {
    const [state] = await withTimeout(
      sql<ChangeState[]>`
        select
          ${lastEntries('allocation_history')} as names,
          (select coalesce(sum(hashtext(concat_ws(' ', zone, drift_checked_at, stopped_cause))::bigint), 0)
            from dns_zones full join dns_zone_writes using (zone))::text as zones,
          (select coalesce(sum(hashtext(concat_ws(' ', id, status, run_generation, finished_at, abandoned_at))::bigint), 0)
            from deployments)::text || '.' || ${lastEntries('deployment_history')} as deployments,
          coalesce((select extract(epoch from max(at))::bigint from replica_samples), 0)::text as samples`,
      timeoutMs,
    )
    if (!state) throw new Error('the statement returned no row')
    return state
  }

  return (): Promise<ChangeState> => {
    if (latest === undefined || now() - latest.at >= CHANGE_INTERVAL_MS) latest = { at: now(), state: read() }
    return latest.state
  }
}

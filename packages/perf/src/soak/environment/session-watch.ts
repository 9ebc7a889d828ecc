import type { Sql } from '@pool/runtime/database/client'
import type { BusySession, SessionSample } from '../checks/evidence.ts'

const SAMPLE_INTERVAL_MS = 250
/** A statement that takes longer is reported. Without faults, none does on an idle machine. */
const MIN_BUSY_MS = 300
/** More than a round of faults takes, after which failed calls are explained. */
const KEPT_MS = 180_000
const MAX_QUERY_LENGTH = 160

const readBusySessions = (sql: Sql): Promise<BusySession[]> => sql<BusySession[]>`
  select a.pid, a.application_name as application, a.state,
    a.wait_event_type || ' ' || a.wait_event as wait,
    extract(epoch from clock_timestamp() - a.state_change)::float8 * 1000 as "forMs",
    left(regexp_replace(a.query, '\\s+', ' ', 'g'), ${MAX_QUERY_LENGTH}) as query,
    (
      select string_agg(
        format('%s (%s) %s: %s', b.pid, b.application_name, b.state,
          left(regexp_replace(b.query, '\\s+', ' ', 'g'), ${MAX_QUERY_LENGTH})), ', ')
      from pg_stat_activity b where b.pid = any (pg_blocking_pids(a.pid))
    ) as blockers
  from pg_stat_activity a
  where a.application_name like 'allocation-api%' and a.state <> 'idle'
    and clock_timestamp() - a.state_change >= ${MIN_BUSY_MS} * interval '1 millisecond'`

/** Samples the sessions of the replicas from its construction until `stop`, so that a failed call can be explained. */
export class SessionWatch {
  readonly #sql: Sql
  readonly #timer: NodeJS.Timeout
  #samples: SessionSample[] = []
  #isSampling = false

  constructor(sql: Sql) {
    this.#sql = sql
    this.#timer = setInterval(() => void this.#sample(), SAMPLE_INTERVAL_MS)
  }

  get samples(): readonly SessionSample[] {
    return this.#samples
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  async #sample(): Promise<void> {
    // A frozen database answers late: one query at a time.
    if (this.#isSampling) return
    this.#isSampling = true
    const start = Date.now()
    const sessions = await readBusySessions(this.#sql).catch(() => null)
    this.#isSampling = false
    const end = Date.now()
    this.#samples = [...this.#samples.filter(sample => sample.end > end - KEPT_MS), { start, end, sessions }]
  }
}

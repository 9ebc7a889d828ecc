import type { Sql } from '@pool/runtime/database/client'
import { until } from '@pool/test-kit/poll.ts'

export interface TestClock {
  /** From now on the clock shows `ms` and stands still; undefined: it follows the clock of the server. */
  readonly stopAt: (ms: number | undefined) => Promise<void>
  /** The clock is ahead of the clock of the server. Resolves when no statement uses the time before. */
  readonly setAhead: (ms: number) => Promise<void>
}

/** Replaces the clock of the leases in a database. */
export const replaceLeaseClock = async (sql: Sql): Promise<TestClock> => {
  await sql.unsafe(`
    create table test_clock (stopped_at bigint, ahead bigint not null);
    insert into test_clock values (null, 0);
    create or replace function lease_clock() returns bigint language sql volatile as $$
      select coalesce(stopped_at, floor(extract(epoch from clock_timestamp()) * 1000)::bigint + ahead) from test_clock
    $$`)
  return {
    async stopAt(ms) {
      await sql`update test_clock set stopped_at = ${ms ?? null}::bigint`
    },
    async setAhead(ms) {
      await sql`update test_clock set ahead = ${ms}::bigint`
      const [{ setAt } = { setAt: '' }] = await sql<{ setAt: string }[]>`select clock_timestamp()::text as "setAt"`
      await until('the end of the statements that began before the step', async () => {
        const older = await sql`
          select 1 from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid() and state <> 'idle' and query_start < ${setAt}::timestamptz`
        return older.length === 0
      })
    },
  }
}

import type { Fragment, Sql } from '@pool/runtime/database/client'
import { MAX_PREVIOUS_RECORD_SETS } from './domain/plan.ts'

/**
 * The assignments that start a new version of a row `d` of dns_names, due at `at`. The records that were desired before
 * become previous ones, because a write of them that timed out can still take effect. Failures of the previous version end.
 */
export const newVersionColumns = (sql: Sql, desired: Fragment, at: Fragment) => sql`
  version = nextval('dns_version'), desired = ${desired}, changed_at = ${at}, next_attempt_at = ${at},
  previous_records = (
    select coalesce(jsonb_agg(record_set order by position), '[]') from (
      select record_set, position from jsonb_array_elements(d.previous_records || d.desired)
        with ordinality as previous (record_set, position)
      order by position desc limit ${MAX_PREVIOUS_RECORD_SETS}
    ) latest),
  attempts = 0, failure = null, last_error = null, is_drift_repair = false`

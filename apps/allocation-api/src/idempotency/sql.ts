import type { Sql } from '@pool/database/client'
import { timeSql } from '@pool/database/time-sql'
import type { IdempotencyClaim } from './idempotency.ts'

/**
 * The first and the last part of a statement that executes at most once per Idempotency-Key:
 *
 *     with claim as (${claim ? claimKey(claim) : noClaim}),
 *       …,                            -- writes that select from `claim`
 *       result as (select … from claim …),
 *       ${storeAndReturn}
 */
export const idempotencySql = (sql: Sql) => {
  const { now, milliseconds } = timeSql(sql)
  return {
    /**
     * One row if the statement may execute: the key is new or expired, or its revision is the expected one. Otherwise no
     * row. A concurrent request with the same key waits here for the first one to commit.
     */
    claimKey: ({ key, fingerprint, keyTtlMs, expectedRevision }: IdempotencyClaim) => sql`
      insert into idempotency_keys as k (key, fingerprint, expires_at)
      values (${key}, ${fingerprint}, ${now} + ${milliseconds(keyTtlMs)})
      on conflict (key) do update set
        fingerprint = excluded.fingerprint, revision = k.revision + 1, expires_at = excluded.expires_at
      where k.revision = ${expectedRevision} or k.expires_at <= ${now}
      returning k.key`,

    /** Without an Idempotency-Key, the statement always executes and stores nothing. */
    noClaim: sql`select null::text as key`,

    /** Stores the row of `result` as JSON under the claimed key, if any, and returns it as the column `result`. */
    storeAndReturn: sql`
      returned as (
        select claim.key, to_jsonb(result) as result from claim, result
      ), stored as (
        insert into idempotency_results (key, result) select key, result from returned where key is not null
        on conflict (key) do update set result = excluded.result
      )
      select result from returned`,
  }
}

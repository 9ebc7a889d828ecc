import type { Sql } from '@pool/runtime/database/client'
import { timeSql } from '@pool/runtime/database/time'
import type { Guard } from '@pool/runtime/database/writer'
import type { IdempotencyClaim } from './idempotency.ts'
import type { SealedToken } from './sealed-token.ts'

/** A token that belongs to the result only if its `outcome` is `success`. */
export interface ResultToken {
  readonly success: string
  readonly token: SealedToken
}

/**
 * The first and the last part of a statement that executes at most once per Idempotency-Key, and not after its deadline:
 *
 *     with claim as (${claimKey(guard, claim)}),
 *       …,                            -- writes that select from `claim`, each with `returning`
 *       result as (select … from claim …),
 *       ${storeAndReturn(guard, claim, ['updated', 'history'])}
 */
export const idempotencySql = (sql: Sql) => {
  const { now, milliseconds } = timeSql(sql)

  /** The names are constants of the code. */
  const countRows = (parts: readonly string[]) =>
    sql`${sql.unsafe(parts.map(part => `(select count(*) from ${part})`).join(' + '))}`

  const insertKey = (guard: Guard, { keyHash, fingerprint, keyTtlMs, expectedRevision }: IdempotencyClaim) => sql`
      insert into idempotency_keys as k (key_hash, fingerprint, expires_at)
      select ${keyHash}, ${fingerprint}, ${now} + ${milliseconds(keyTtlMs)} where ${guard.limitLockWait}
      on conflict (key_hash) do update set
        fingerprint = excluded.fingerprint, revision = k.revision + 1, expires_at = excluded.expires_at
      where k.revision = ${expectedRevision} or k.expires_at <= ${now}
      returning k.key_hash`

  /** True, or an error that undoes the statement. `parts` are all of its parts that write. */
  const assertInTime = (guard: Guard, parts: readonly string[]) =>
    sql`in_time as materialized (select ${guard.assertInTime(countRows(parts))})`

  return {
    /**
     * One row if the statement may execute: the key is new or expired, or its revision is the expected one. Otherwise no
     * row. A concurrent request with the same key waits here for the first one to commit. Without an Idempotency-Key, the
     * statement always executes and stores nothing.
     */
    claimKey: (guard: Guard, claim: IdempotencyClaim | null) =>
      claim ? insertKey(guard, claim) : sql`select null::bytea as key_hash where ${guard.limitLockWait}`,

    /** The last part of a statement without a stored result, which selects `from in_time` what it returns. */
    assertInTime,

    /**
     * Stores the row of `result` as JSON under the claimed key, if any, and returns it as the column `result`. The row must
     * not contain a token; a token that a replay needs is stored sealed. `parts` are the parts of the statement that write.
     */
    storeAndReturn: (
      guard: Guard,
      claim: IdempotencyClaim | null,
      parts: readonly string[],
      resultToken: ResultToken | null = null,
    ) =>
      // Without a key there is nothing to store, so the statement has no part for it.
      claim === null
        ? sql`
      returned as (select row_to_json(result) as result from result), ${assertInTime(guard, parts)}
      select result from returned, in_time`
        : sql`
      returned as (
        select claim.key_hash, to_jsonb(result) as result from claim, result
      ), stored as (
        insert into idempotency_results (key_hash, result, salt, sealed)
        select key_hash, result, ${
          resultToken
            ? sql`
              case when has_token then ${resultToken.token.salt}::bytea end,
              case when has_token then ${resultToken.token.sealed}::bytea end
              from returned, lateral (select result ->> 'outcome' = ${resultToken.success} as has_token) success`
            : sql`null, null from returned`
        }
        on conflict (key_hash) do update set result = excluded.result, salt = excluded.salt, sealed = excluded.sealed
        returning 1
      ), ${assertInTime(guard, [...parts, 'stored'])}
      select result from returned, in_time`,
  }
}

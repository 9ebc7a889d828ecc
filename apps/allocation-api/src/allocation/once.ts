import { createHash } from 'node:crypto'
import { DatabaseTimeout, inTransaction, type Queryable, type Sql, within } from '../database/connect.ts'
import type { Refusal } from './allocation.ts'

/** A request that may come again under the same key. `content` is what makes it the same request. */
export interface KeyedRequest {
  readonly key: string
  readonly content: readonly unknown[]
}

/** Makes a decision at most once for an Idempotency-Key. Without one, it is made anew each time. */
export type Once<Store> = <Decision extends object>(
  request: KeyedRequest | null,
  decide: (store: Store) => Promise<Decision>,
  /** Says whether a remembered decision still holds: the one to answer now, or null to decide anew. */
  revive?: (first: Decision, store: Store) => Promise<Decision | null>,
) => Promise<Decision | Refusal<'idempotency-key-reused'>>

export interface OnceOptions {
  readonly timeoutMs: number
  /** Milliseconds for which a key is remembered. */
  readonly keyTtlMs: number
}

/**
 * The decision and its memory are one transaction: both are kept or neither. Requests with the same key take turns on
 * a lock that ends with the transaction, so the second sees what the first decided. What the request's form alone
 * decides (400, 422) is not remembered, nor is an answer that said the database was away.
 */
export const createOnce = <Store>(
  sql: Sql,
  storeOf: (sql: Queryable) => Store,
  { timeoutMs, keyTtlMs }: OnceOptions,
): Once<Store> => {
  const store = storeOf(sql)
  return async <Decision extends object>(
    request: KeyedRequest | null,
    decide: (store: Store) => Promise<Decision>,
    revive?: (first: Decision, store: Store) => Promise<Decision | null>,
  ) => {
    if (!request) return decide(store)
    const fingerprint = createHash('sha256').update(JSON.stringify(request.content)).digest()
    const givenUpAt = performance.now() + timeoutMs
    return inTransaction<Decision | Refusal<'idempotency-key-reused'>>(sql, async tx => {
      // The wait for a connection counts too: whoever asked has been answered by now.
      if (performance.now() > givenUpAt) throw new DatabaseTimeout(`no connection within ${timeoutMs} ms`)
      await within(timeoutMs, tx`select pg_advisory_xact_lock(hashtextextended(${request.key}, 0))`)
      const [known] = await within(
        timeoutMs,
        tx<{ same: boolean; outcome: Decision }[]>`
          select fingerprint = ${fingerprint} as same, outcome from idempotency_keys
          where key = ${request.key} and expires_at > statement_timestamp()`,
      )
      if (known && !known.same) return { kind: 'idempotency-key-reused' }
      const storeInside = storeOf(tx)
      const remembered = known && revive ? await revive(known.outcome, storeInside) : known?.outcome
      if (remembered) return remembered
      const decision = await decide(storeInside)
      await within(
        timeoutMs,
        tx`
          insert into idempotency_keys (key, fingerprint, outcome, expires_at)
          values (${request.key}, ${fingerprint}, ${tx.json(decision as never)},
            statement_timestamp() + ${keyTtlMs}::float8 * interval '1 millisecond')
          on conflict (key) do update set
            fingerprint = excluded.fingerprint, outcome = excluded.outcome, expires_at = excluded.expires_at`,
      )
      return decision
    })
  }
}

/** Forgets up to `limit` keys whose time is up; how many. */
export const forgetKeys = async (sql: Sql, limit: number, timeoutMs: number): Promise<number> => {
  const forgotten = await within(
    timeoutMs,
    sql`
      delete from idempotency_keys where key in (
        select key from idempotency_keys where expires_at <= statement_timestamp()
        order by expires_at limit ${limit} for update skip locked
      )`,
  )
  return forgotten.count
}

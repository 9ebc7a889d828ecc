import { createHash } from 'node:crypto'
import type { Sql } from '@pool/database/client'
import { withTimeout } from '@pool/database/with-timeout'
import type { DuplicateRequest, IdempotencyClaim, Rejection } from '../allocation/domain/types.ts'

/** A request that may come again under the same key. `content` is what makes it the same request. */
export interface KeyedRequest {
  readonly key: string
  readonly content: readonly unknown[]
}

export interface Deciding<Decision> {
  /** Decides, and remembers the decision under the key of the turn. */
  readonly decide: (turn: IdempotencyClaim | null) => Promise<Decision | DuplicateRequest>
  /**
   * Whether that is one statement, which without its turn does nothing: then it is tried at once, and what was decided
   * before is looked for only when there was no turn. A key that is new, as nearly all are, costs no second round trip.
   */
  readonly isOneStatement: boolean
  /** A remembered decision as it is to be answered now; null when it holds no more, and is to be made anew. */
  readonly recall: (decision: unknown) => Decision | null | Promise<Decision | null>
}

/** Makes a decision at most once for an Idempotency-Key. Without one, it is made anew each time. */
export type Once = <Decision extends { readonly kind: string }>(
  request: KeyedRequest | null,
  deciding: Deciding<Decision>,
) => Promise<Decision | Rejection<'idempotency-key-reused'>>

export interface OnceOptions {
  readonly timeoutMs: number
  /** Milliseconds for which a key is remembered. */
  readonly keyTtlMs: number
}

const isTaken = (decision: { readonly kind: string }): decision is DuplicateRequest => decision.kind === 'key-taken'

/**
 * The unique key decides who decides: the statement that makes the decision first takes its turn in `idempotency_keys`
 * and writes the decision down, all or nothing. A request with the same key waits there until it is done, finds that
 * it has no turn, and reads what was decided. What the form of a request alone decides (400, 422) is not remembered.
 */
export const createOnce = (sql: Sql, { timeoutMs, keyTtlMs }: OnceOptions): Once => {
  return async (request, { decide, isOneStatement, recall }) => {
    if (!request) {
      const decision = await decide(null)
      if (!isTaken(decision)) return decision
      throw new Error('a decision without a key was refused its turn')
    }
    const { key } = request
    const fingerprint = createHash('sha256').update(JSON.stringify(request.content)).digest()
    const look = async () => {
      const [known] = await withTimeout(
        sql<{ isSame: boolean; attempt: number; decision: unknown }[]>`
          select fingerprint = ${fingerprint} as "isSame", revision as attempt, result as decision
          from idempotency_keys join idempotency_results using (key)
          where key = ${key} and expires_at > statement_timestamp()`,
        timeoutMs,
      )
      return known
    }
    for (let isFirst = true; ; isFirst = false) {
      const known = isFirst && isOneStatement ? undefined : await look()
      if (known && !known.isSame) return { kind: 'idempotency-key-reused' }
      const remembered = known ? await recall(known.decision) : null
      if (remembered !== null) return remembered
      const decision = await decide({ key, fingerprint, keyTtlMs, seenAttempt: known?.attempt ?? 0 })
      // It came before, or somebody with the same key was faster: what they decided is there to be read now.
      if (!isTaken(decision)) return decision
    }
  }
}

/** Forgets up to `limit` keys whose time is up; how many. */
export const deleteExpiredKeys = async (sql: Sql, limit: number, timeoutMs: number): Promise<number> => {
  const forgotten = await withTimeout(
    sql`
      delete from idempotency_keys where key in (
        select key from idempotency_keys where expires_at <= statement_timestamp()
        order by expires_at limit ${limit} for update skip locked
      )`,
    timeoutMs,
  )
  return forgotten.count
}

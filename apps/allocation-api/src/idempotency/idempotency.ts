import { createHash } from 'node:crypto'
import type { Sql } from '@pool/runtime/database/client'
import { withTimeout } from '@pool/runtime/database/time'
import { hashIdempotencyKey, openSealedToken, type SealedToken, sealToken } from './sealed-token.ts'

/**
 * The right to execute under an Idempotency-Key, which the executing statement claims (see sql.ts). It does not contain the
 * key in clear text: the key is a secret of its client.
 */
export interface IdempotencyClaim {
  readonly keyHash: Buffer
  /** SHA-256 of the request. */
  readonly fingerprint: Buffer
  readonly keyTtlMs: number
  /** The revision of the stored result that no longer holds; 0 if no result was found. */
  readonly expectedRevision: number
  /** Encrypts the token of a result, for a replay under the same key. */
  readonly sealToken: (token: string) => SealedToken
}

/** Nothing was executed, because another request with the same key executes or has executed. */
export interface DuplicateRequest {
  readonly kind: 'duplicate-request'
}

/** The key belongs to a request with other content. */
export interface KeyReused {
  readonly kind: 'idempotency-key-reused'
}

export const duplicateRequest: DuplicateRequest = { kind: 'duplicate-request' }

export interface IdempotentOperation<Result extends { readonly kind: string }> {
  /** Executes, and stores the result under the key of the claim in the same statement. Without a key, `claim` is null. */
  readonly execute: (claim: IdempotencyClaim | null) => Promise<Result | DuplicateRequest>
  /**
   * The response to a repeated request; null if the stored result no longer holds and the operation must execute again.
   * `token` is the token that the statement sealed; null: the result has none.
   */
  readonly replay: (storedResult: unknown, token: string | null) => Result | null | Promise<Result | null>
}

interface StoredResult {
  readonly isSameRequest: boolean
  readonly revision: number
  readonly result: unknown
  readonly salt: Buffer | null
  readonly sealed: Buffer | null
}

const toToken = (key: string, keyHash: Buffer, { salt, sealed }: StoredResult): string | null =>
  salt && sealed ? openSealedToken(key, keyHash, { salt, sealed }) : null

export interface IdempotencyOptions {
  readonly timeoutMs: number
  /** Milliseconds for which a key is kept. */
  readonly keyTtlMs: number
}

export type Idempotency = ReturnType<typeof createIdempotency>

export const isDuplicate = (result: { readonly kind: string }): result is DuplicateRequest =>
  result.kind === 'duplicate-request'

const executeWithoutKey = async <Result extends { readonly kind: string }>({
  execute,
}: IdempotentOperation<Result>): Promise<Result> => {
  const result = await execute(null)
  if (isDuplicate(result)) throw new Error('an operation without an Idempotency-Key returned duplicate-request')
  return result
}

/** A claim of a key that is new or expired. `content` identifies the request. */
export const createClaim = (key: string, content: readonly unknown[], keyTtlMs: number): IdempotencyClaim => {
  const keyHash = hashIdempotencyKey(key)
  return {
    keyHash,
    fingerprint: createHash('sha256').update(JSON.stringify(content)).digest(),
    keyTtlMs,
    expectedRevision: 0,
    sealToken: token => sealToken(key, keyHash, token),
  }
}

/**
 * Executes an operation at most once per Idempotency-Key. The unique key in `idempotency_keys` decides: the executing
 * statement claims the key and stores the result, all or nothing. `content` identifies the request; the same key with other
 * content is `idempotency-key-reused`. Requests that fail validation (400, 422) do not use up their key.
 */
export const createIdempotency = (sql: Sql, { timeoutMs, keyTtlMs }: IdempotencyOptions) => {
  const findResult = async ({ keyHash, fingerprint }: IdempotencyClaim) => {
    const [stored] = await withTimeout(
      sql<StoredResult[]>`
        select fingerprint = ${fingerprint} as "isSameRequest", revision, result, salt, sealed
        from idempotency_keys join idempotency_results using (key_hash)
        where key_hash = ${keyHash} and expires_at > statement_timestamp()`,
      timeoutMs,
    )
    return stored
  }

  const replayOrExecute = async <Result extends { readonly kind: string }>(
    key: string,
    claim: IdempotencyClaim,
    { execute, replay }: IdempotentOperation<Result>,
  ): Promise<Result | KeyReused> => {
    for (;;) {
      const stored = await findResult(claim)
      if (stored && !stored.isSameRequest) return { kind: 'idempotency-key-reused' }
      const replayed = stored ? await replay(stored.result, toToken(key, claim.keyHash, stored)) : null
      if (replayed !== null) return replayed
      const result = await execute({ ...claim, expectedRevision: stored?.revision ?? 0 })
      if (!isDuplicate(result)) return result
      // Another request with this key executed since findResult. Its result is stored now.
    }
  }

  return {
    /**
     * Optimistic: for an operation that is one statement, which has no effect unless it claims the key. A new key, the
     * usual case, needs no extra round trip.
     */
    async executeThenReplay<Result extends { readonly kind: string }>(
      key: string | undefined,
      content: readonly unknown[],
      operation: IdempotentOperation<Result>,
    ): Promise<Result | KeyReused> {
      if (key === undefined) return executeWithoutKey(operation)
      const claim = createClaim(key, content, keyTtlMs)
      const result = await operation.execute(claim)
      return isDuplicate(result) ? replayOrExecute(key, claim, operation) : result
    },

    /** For an operation that has effects before the statement that claims the key. */
    async replayThenExecute<Result extends { readonly kind: string }>(
      key: string | undefined,
      content: readonly unknown[],
      operation: IdempotentOperation<Result>,
    ): Promise<Result | KeyReused> {
      return key === undefined
        ? executeWithoutKey(operation)
        : replayOrExecute(key, createClaim(key, content, keyTtlMs), operation)
    },

    /** Whether another request with the key of the claim has executed since the claim was created. */
    async isExecuted(claim: IdempotencyClaim): Promise<boolean> {
      return ((await findResult(claim))?.revision ?? 0) > claim.expectedRevision
    },

    /** Deletes up to `limit` expired keys with their results. Returns how many. */
    async deleteExpiredKeys(limit: number): Promise<number> {
      const deleted = await withTimeout(
        sql`
          delete from idempotency_keys where key_hash in (
            select key_hash from idempotency_keys where expires_at <= statement_timestamp()
            order by expires_at limit ${limit} for update skip locked
          )`,
        timeoutMs,
      )
      return deleted.count
    },
  }
}

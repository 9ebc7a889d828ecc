import { hash } from 'node:crypto'
import type { Sql } from '@pool/runtime/database/client'
import { isUniqueViolation } from '@pool/runtime/database/errors'
import { NOW, toInterval, withTimeout } from '@pool/runtime/database/time'
import { createSalt, deriveSecret, deriveToken, hashIdempotencyKey, openSealedToken } from '../lib/token.ts'

/**
 * The right to execute under an Idempotency-Key. It does not contain the key in clear text: the key is a secret of its
 * client.
 */
export interface IdempotencyClaim {
  /** Hexadecimal, as the two that follow. */
  readonly keyHash: string
  /** SHA-256 of the request. */
  readonly fingerprint: string
  /** The revision of the stored result that no longer holds; 0 if no result was found. */
  readonly expectedRevision: number
  /** Stored with the result: its token derives from the key and the salt, so that a replay has it. */
  readonly salt: string
  readonly token: () => string
  /** As `token`, of a token that is no UUID: 256 bits. */
  readonly secret: () => Buffer
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
  /** Executes, and stores what changed something under the key of the claim in the same statement. Without a key, `claim` is null. */
  readonly execute: (claim: IdempotencyClaim | null) => Promise<Result | DuplicateRequest>
  /** The kind of the result that is stored. A rejection is not: a retry decides again. */
  readonly success: Result['kind']
  /**
   * The response to a repeated request; null if the stored result no longer holds and the operation must execute again.
   * `token` is the token that the result had; null: it had none. `secret`: as that of the claim.
   */
  readonly replay: (
    storedResult: unknown,
    token: string | null,
    secret: () => Buffer,
  ) => Result | null | Promise<Result | null>
}

interface StoredResult {
  readonly isSameRequest: boolean
  readonly revision: number
  readonly result: unknown
  readonly salt: string | null
  /** Of a build with schema 1. */
  readonly sealed: Buffer | null
}

const toToken = (key: string, { salt, sealed }: StoredResult): string | null => {
  if (salt === null) return null
  return sealed ? openSealedToken(key, Buffer.from(salt, 'hex'), sealed) : deriveToken(key, salt)
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

// The parts of a statement whose requests can have an Idempotency-Key each. The table has the outcomes of those that changed
// something; a rejection leaves no row, so a retry decides again.

/** For which a key is kept. */
const KEY_TTL_MS = 24 * 3_600_000

/** The names of `KEY_COLUMNS`. */
export const KEYS = 'key_hash, fingerprint, revision, salt'

/** The columns of a request for its key. All are null if it has none. */
export const KEY_COLUMNS = 'key_hash bytea, fingerprint bytea, revision integer, salt bytea'

/** Bytes as the text of a `bytea`. */
export const toHex = (bytes: Buffer | undefined): string | null => (bytes ? `\\x${bytes.toString('hex')}` : null)

export const toKeyColumns = (claim: IdempotencyClaim | null) =>
  claim && {
    key_hash: `\\x${claim.keyHash}`,
    fingerprint: `\\x${claim.fingerprint}`,
    revision: claim.expectedRevision,
    salt: `\\x${claim.salt}`,
  }

/** Whether the request of the row `input` may execute: its key is new or expired, or has the expected revision. */
export const IS_NEW_KEY = `
  coalesce((
    select k.revision from idempotency_keys k where k.key_hash = input.key_hash and k.expires_at > ${NOW} limit 1
  ) = input.revision, true)`

/**
 * Stores the outcomes in `rows`, which have the columns of the key and `result`, JSON. Rows without a key are left out. A key
 * under which another request has stored an outcome since the start of the statement undoes the statement: see
 * `isDuplicateKey`. It is the last part of a statement that locks rows, and locks them in the order of the keys.
 */
export const storeOutcomes = (rows: string): string => `
  insert into idempotency_keys as k (key_hash, fingerprint, revision, expires_at, result, salt)
  select key_hash, fingerprint, revision + 1, ${NOW} + ${toInterval(KEY_TTL_MS)}, result, salt
  from ${rows} where key_hash is not null order by key_hash
  on conflict (key_hash) do update set
    fingerprint = excluded.fingerprint, revision = excluded.revision, expires_at = excluded.expires_at,
    result = excluded.result, salt = excluded.salt, sealed = null
  where case when k.expires_at <= ${NOW} or k.revision = excluded.revision - 1 then true else reject_duplicate_key() end
  returning 1`

/** Whether another request has stored an outcome under a key of the statement, which had no effect. */
export const isDuplicateKey = (error: unknown): boolean => isUniqueViolation(error, 'idempotency_keys_pkey')

/** A claim of a key that is new or expired. `content` identifies the request. */
export const createClaim = (key: string, content: readonly unknown[]): IdempotencyClaim => {
  const salt = createSalt()
  return {
    keyHash: hashIdempotencyKey(key),
    fingerprint: hash('sha256', JSON.stringify(content), 'hex'),
    expectedRevision: 0,
    salt,
    token: () => deriveToken(key, salt),
    secret: () => deriveSecret(key, salt),
  }
}

/**
 * Executes an operation with an effect at most once per Idempotency-Key. The unique key in `idempotency_keys` decides: the
 * executing statement stores its outcome, all or nothing. `content` identifies the request; the same key with other content
 * is `idempotency-key-reused`. What has no effect (4xx) does not use up its key.
 */
export const createIdempotency = (sql: Sql, { timeoutMs }: { readonly timeoutMs: number }) => {
  const findResult = async ({ keyHash, fingerprint }: IdempotencyClaim) => {
    const [stored] = await withTimeout(
      sql<StoredResult[]>`
        select fingerprint = decode(${fingerprint}, 'hex') as "isSameRequest", revision, result,
          encode(salt, 'hex') as salt, sealed
        from idempotency_keys where key_hash = decode(${keyHash}, 'hex') and expires_at > statement_timestamp()`,
      timeoutMs,
    )
    return stored
  }

  /** After an execution that stored nothing, or before the first one: `rejection` is null. */
  const replayOrExecute = async <Result extends { readonly kind: string }>(
    key: string,
    claim: IdempotencyClaim,
    operation: IdempotentOperation<Result>,
    rejection: Result | null,
  ): Promise<Result | KeyReused> => {
    for (let [expectedRevision, rejected] = [claim.expectedRevision, rejection]; ; ) {
      const stored = await findResult(claim)
      // A newer outcome is that of another request with this key, which was executed meanwhile.
      if (rejected && (stored?.revision ?? 0) <= expectedRevision) return rejected
      if (stored && !stored.isSameRequest) return { kind: 'idempotency-key-reused' }
      const replayed = stored
        ? await operation.replay(stored.result, toToken(key, stored), () => deriveSecret(key, stored.salt ?? ''))
        : null
      if (replayed !== null) return replayed
      expectedRevision = stored?.revision ?? 0
      const result = await operation.execute({ ...claim, expectedRevision })
      rejected = isDuplicate(result) ? null : result
      if (rejected?.kind === operation.success) return rejected
    }
  }

  return {
    /** For an operation that is one statement. A new key, the usual case, needs no other one. */
    async executeThenReplay<Result extends { readonly kind: string }>(
      key: string | undefined,
      content: readonly unknown[],
      operation: IdempotentOperation<Result>,
    ): Promise<Result | KeyReused> {
      if (key === undefined) return executeWithoutKey(operation)
      const claim = createClaim(key, content)
      const result = await operation.execute(claim)
      if (isDuplicate(result)) return replayOrExecute(key, claim, operation, null)
      return result.kind === operation.success ? result : replayOrExecute(key, claim, operation, result)
    },

    /** For an operation that has effects before the statement that stores its outcome. */
    async replayThenExecute<Result extends { readonly kind: string }>(
      key: string | undefined,
      content: readonly unknown[],
      operation: IdempotentOperation<Result>,
    ): Promise<Result | KeyReused> {
      return key === undefined
        ? executeWithoutKey(operation)
        : replayOrExecute(key, createClaim(key, content), operation, null)
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

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Sql } from '@pool/runtime/database/client'
import { timeSql, withTimeout } from '@pool/runtime/database/time'
import { readSignInCode, SIGN_IN_CODE_MS } from '@pool/runtime/service/sign-in-code'
import { type LiveSession, MAX_SESSION_AGE_MS, SESSION_ID_BYTES, SESSION_IDLE_MS } from './domain/session.ts'

const hashId = (id: string): Buffer => createHash('sha256').update(id).digest()

/** Binds a session to its token. Without the id, which is not stored, it reveals nothing about a token that is easy to guess. */
const createTokenMac = (id: string, token: string): Buffer => createHmac('sha256', id).update(token).digest()

/** Whether the token of the session is one of `tokens`. */
const isBoundTo = (id: string, mac: Buffer, tokens: readonly string[]): boolean =>
  tokens.filter(token => timingSafeEqual(createTokenMac(id, token), mac)).length > 0

/** A session is stored as used again after this time, so that most requests only read. */
const USE_INTERVAL_MS = 60_000

export type OperatorSessions = ReturnType<typeof createOperatorSessions>

/**
 * The sessions of browsers, valid on every replica. The clock of the database decides when one has ended. Only hashes are
 * stored, so a reader of the table can use no session.
 */
export const createOperatorSessions = (
  sql: Sql,
  { timeoutMs, tokens }: { readonly timeoutMs: number; readonly tokens: readonly string[] },
) => {
  const { now, milliseconds } = timeSql(sql)
  const expiresAt = sql`(created_at + ${milliseconds(MAX_SESSION_AGE_MS)})`
  const isLive = sql`(${expiresAt} > ${now} and last_used_at + ${milliseconds(SESSION_IDLE_MS)} > ${now})`
  const columns = sql`created_at as "createdAt", ${expiresAt} as "expiresAt"`

  return {
    /** `token` is one of the configured tokens. The id is the secret of the browser. */
    async start(token: string): Promise<{ readonly id: string; readonly session: LiveSession }> {
      const id = randomBytes(SESSION_ID_BYTES).toString('base64url')
      const [session] = await withTimeout(
        sql<LiveSession[]>`
          insert into operator_sessions (id_hash, token_mac, created_at, last_used_at)
          values (${hashId(id)}, ${createTokenMac(id, token)}, ${now}, ${now})
          returning ${columns}`,
        timeoutMs,
      )
      if (!session) throw new Error('the insert of a session returned no row')
      return { id, session }
    },

    /** The token in whose place a sign-in code is accepted; null if it has expired, was used, or is none. Uses it up. */
    async redeemCode(code: string): Promise<string | null> {
      const found = readSignInCode(code, tokens)
      if (found === null) return null
      // The primary key lets one of concurrent sign-ins insert the row, which no cookie can name.
      const used = await withTimeout(
        sql`
          insert into operator_sessions (id_hash, token_mac, created_at, last_used_at)
          select ${hashId(code)}, ${createTokenMac(code, found.token)}, ${now}, ${now}
          where ${new Date(found.issuedAt)} between ${now} - ${milliseconds(SIGN_IN_CODE_MS)} and ${now}
          on conflict do nothing`,
        timeoutMs,
      )
      return used.count === 1 ? found.token : null
    },

    /** The session, if it has not ended and its token is still configured; null if not. Counts as a use. */
    async find(id: string): Promise<LiveSession | null> {
      const [session] = await withTimeout(
        sql<(LiveSession & { tokenMac: Buffer; isUseDue: boolean })[]>`
          select ${columns}, token_mac as "tokenMac", last_used_at < ${now} - ${milliseconds(USE_INTERVAL_MS)} as "isUseDue"
          from operator_sessions where id_hash = ${hashId(id)} and ${isLive}`,
        timeoutMs,
      )
      if (!session || !isBoundTo(id, session.tokenMac, tokens)) return null
      if (session.isUseDue) {
        const used = sql`update operator_sessions set last_used_at = ${now} where id_hash = ${hashId(id)} and ${isLive}`
        // A read-only database must not lock operators out.
        await withTimeout(used, timeoutMs).catch(() => {})
      }
      return { createdAt: session.createdAt, expiresAt: session.expiresAt }
    },

    /** Ends the session on every replica. */
    async end(id: string): Promise<void> {
      await withTimeout(sql`delete from operator_sessions where id_hash = ${hashId(id)}`, timeoutMs)
    },

    /** Deletes up to `limit` sessions that have ended. Returns whether there may be more. */
    async deleteEnded(limit: number): Promise<boolean> {
      const deleted = await withTimeout(
        sql`
          delete from operator_sessions where id_hash in (
            select id_hash from operator_sessions where not ${isLive} order by created_at limit ${limit}
            for update skip locked)`,
        timeoutMs,
      )
      return deleted.count === limit
    },
  }
}

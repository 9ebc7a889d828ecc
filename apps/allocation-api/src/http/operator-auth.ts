import { createHash, timingSafeEqual } from 'node:crypto'
import { isRecordsPath, operations } from '@pool/contract'
import type { Context, Next } from 'hono'
import { createMiddleware } from 'hono/factory'
import type { RateLimitDecision } from '../lib/rate-limiter.ts'
import { EXPIRED_SESSION_COOKIES, parseSessionCookie } from '../operator/domain/session.ts'
import type { OperatorSessions } from '../operator/sessions.ts'
import { type ErrorOutcome, type HttpEnv, sendError } from './request.ts'
import { isSameOriginWrite } from './sender.ts'

const toDigest = (token: string): Buffer => createHash('sha256').update(token).digest()

/** Counts a wrong credential of the client with this address. */
export type LimitFailures = (address: string | null) => RateLimitDecision

/**
 * Responds to a wrong credential of any kind. The credential has been checked before the limit, so that other clients behind
 * the address of a guesser are not locked out. Every failure has the same response, so a client cannot distinguish a malformed
 * credential from a wrong one.
 */
export const rejectCredential = (c: Context<HttpEnv>, limitFailures: LimitFailures, detail?: string): Response => {
  const decision = limitFailures(c.env.address)
  const error: ErrorOutcome =
    decision.kind === 'allowed'
      ? { kind: 'unauthorized', ...(detail === undefined ? {} : { detail }) }
      : { ...decision, detail: `Too many attempts; retry in ${decision.retryAfterSeconds} s.` }
  return sendError(c, error)
}

/** The token of `Bearer` (RFC 6750), or the password of `Basic` (RFC 7617), whatever the user. Null: neither. */
export const parseCredential = (authorization: string): string | null => {
  const [, scheme = '', value = ''] = /^(bearer|basic) +(\S+) *$/i.exec(authorization) ?? []
  if (scheme.toLowerCase() !== 'basic') return value || null
  const [, password = null] = /^[^:]*:(.*)$/s.exec(Buffer.from(value, 'base64').toString()) ?? []
  return password
}

/**
 * Compares digests of equal length and always all of them, so that the time depends neither on the matching part of a token
 * nor on which token matches.
 */
export const isOneOfTokens = (tokens: readonly string[]) => {
  const digests = tokens.map(toDigest)
  return (token: string): boolean => digests.filter(digest => timingSafeEqual(digest, toDigest(token))).length > 0
}

const WRONG_TOKEN =
  'The credential that was sent is not one of the operator tokens (PDM_OPERATOR_TOKENS); send one of them.'

/** Requires one of `tokens`. A request without a credential is not an attempt. */
const requireOperatorToken = (tokens: readonly string[], limitFailures: LimitFailures) => {
  const isToken = isOneOfTokens(tokens)
  return async (c: Context<HttpEnv>, next: Next) => {
    const authorization = c.req.header('Authorization')
    if (!authorization) return sendError(c, { kind: 'unauthorized' })
    const token = parseCredential(authorization)
    return token !== null && isToken(token) ? next() : rejectCredential(c, limitFailures, WRONG_TOKEN)
  }
}

const noLimit: LimitFailures = () => ({ kind: 'allowed' })

const NOT_SAME_ORIGIN =
  'With a session, only pages of this origin can change something; use Authorization: Bearer <token> outside of a browser.'

/** What a browser needs before it has a session. */
const startsSession = (method: string, path: string): boolean =>
  method === 'POST' && path === operations.startSession.path

/** The id of the session that decides about the request; null: its token does. */
const getSessionId = (c: Context<HttpEnv>): string | null =>
  c.req.header('Authorization') === undefined ? parseSessionCookie(c.req.header('Cookie')) : null

/**
 * Requires an operator token. Until the database is reached, it is unknown whether a session or a token of a tenant is valid, so
 * requests with one get the same response as every request with a token.
 */
export const requireTokenAtStart = (tokens: readonly string[], sendStarting: (c: Context<HttpEnv>) => Response) => {
  const requireToken = requireOperatorToken(tokens, noLimit)
  const isUnknown = (c: Context<HttpEnv>): boolean =>
    isRecordsPath(c.req.path) || startsSession(c.req.method, c.req.path) || getSessionId(c) !== null
  return createMiddleware<HttpEnv>(async (c, next) => (isUnknown(c) ? sendStarting(c) : requireToken(c, next)))
}

/**
 * Requires an operator token, or a session in a cookie; not for what tools of tenants call, whose routes accept other tokens
 * only. A browser adds the cookie to every request, so with it one that
 * changes something must come from a page of this origin. A request with both is decided by its token.
 */
export const requireOperator = (
  tokens: readonly string[],
  sessions: Pick<OperatorSessions, 'find'> & { readonly limitFailures: LimitFailures },
) => {
  const requireToken = requireOperatorToken(tokens, sessions.limitFailures)
  return createMiddleware<HttpEnv>(async (c, next) => {
    if (startsSession(c.req.method, c.req.path) || isRecordsPath(c.req.path)) return next()
    const id = getSessionId(c)
    if (id === null) return requireToken(c, next)
    const { method } = c.req
    const headers = {
      secFetchSite: c.req.header('Sec-Fetch-Site'),
      origin: c.req.header('Origin'),
      host: c.req.header('Host'),
    }
    const isRead = method === 'GET' || method === 'HEAD'
    if (!isRead && !isSameOriginWrite(headers)) return sendError(c, { kind: 'forbidden', detail: NOT_SAME_ORIGIN })
    const session = await sessions.find(id)
    if (!session) {
      for (const cookie of EXPIRED_SESSION_COOKIES) c.header('Set-Cookie', cookie, { append: true })
      return rejectCredential(c, sessions.limitFailures, 'The session has ended; sign in again.')
    }
    c.set('session', { id, ...session })
    c.set('isStillAuthorized', async () => (await sessions.find(id)) !== null)
    return next()
  })
}

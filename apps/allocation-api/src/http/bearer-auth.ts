import { createHash, timingSafeEqual } from 'node:crypto'
import type { Context } from 'hono'
import { bearerAuth } from 'hono/bearer-auth'
import { type HttpEnv, OPERATOR_CHALLENGE, sendError } from './request.ts'

const toDigest = (token: string): Buffer => createHash('sha256').update(token).digest()

/** Every failure has the same response, so a client cannot distinguish a malformed header from a wrong token. */
const failure = {
  wwwAuthenticateHeader: OPERATOR_CHALLENGE,
  message: (c: Context<HttpEnv>) => sendError(c, { kind: 'unauthorized' }),
}

/**
 * Compares digests of equal length and always all of them, so that the time depends neither on the matching part of a token
 * nor on which token matches.
 */
export const isOneOfTokens = (tokens: readonly string[]) => {
  const digests = tokens.map(toDigest)
  return (token: string): boolean => digests.filter(digest => timingSafeEqual(digest, toDigest(token))).length > 0
}

/** Requires one of `tokens` (RFC 6750). */
export const requireOperatorToken = (tokens: readonly string[]) =>
  bearerAuth({
    verifyToken: isOneOfTokens(tokens),
    noAuthenticationHeader: failure,
    invalidAuthenticationHeader: failure,
    invalidToken: failure,
  })

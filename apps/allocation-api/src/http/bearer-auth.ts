import { createHash, timingSafeEqual } from 'node:crypto'
import type { Context } from 'hono'
import { bearerAuth } from 'hono/bearer-auth'
import { sendError } from './errors.ts'
import type { HttpEnv } from './types.ts'

const toDigest = (token: string): Buffer => createHash('sha256').update(token).digest()

/** Every failure has the same response, so a client cannot distinguish a malformed header from a wrong token. */
const failure = {
  wwwAuthenticateHeader: 'Bearer realm="operator"',
  message: (c: Context<HttpEnv>) => sendError(c, { kind: 'unauthorized' }),
}

/**
 * Requires one of `tokens` (RFC 6750). It compares digests of equal length and always all of them, so that the time
 * depends neither on the matching part of a token nor on which token matches.
 */
export const requireOperatorToken = (tokens: readonly string[]) => {
  const digests = tokens.map(toDigest)
  return bearerAuth({
    verifyToken: token => digests.filter(digest => timingSafeEqual(digest, toDigest(token))).length > 0,
    noAuthenticationHeader: failure,
    invalidAuthenticationHeader: failure,
    invalidToken: failure,
  })
}

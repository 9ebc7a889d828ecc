import { createMiddleware } from 'hono/factory'
import { bearerToken, tokensOf } from '../tokens.ts'
import type { HttpEnv } from './env.ts'

const utf8 = new TextEncoder()
const digest = (text: string): Promise<ArrayBuffer> => crypto.subtle.digest('SHA-256', utf8.encode(text))

/** The digests of an allow-list, kept for the one that the isolate runs with: a new secret is a new deployment. */
let allowed: { readonly csv: string; readonly digests: Promise<ArrayBuffer[]> } | undefined

const digestsOf = (csv: string): Promise<ArrayBuffer[]> => {
  if (allowed?.csv !== csv) allowed = { csv, digests: Promise.all(tokensOf(csv).map(digest)) }
  return allowed.digests
}

/**
 * Lets through who sends one of the allow-list's tokens. Digests of equal length are compared, each with every allowed
 * one, so that the time taken tells neither how much of a token was right nor which one it was.
 */
export const bearerOnly = createMiddleware<HttpEnv>(async (c, next) => {
  const token = bearerToken(c.req.header('Authorization'))
  const digests = await digestsOf(c.env.BEARER_TOKENS_CSV ?? '')
  const given = await digest(token ?? '')
  const matches = digests.filter(one => crypto.subtle.timingSafeEqual(one, given)).length
  if (token === undefined || matches === 0) {
    c.set('outcome', 'unauthorized')
    c.header('WWW-Authenticate', 'Bearer')
    // The contract gives this body to the letter: no detail.
    return c.json({ error: 'unauthorized' }, 401)
  }
  return next()
})

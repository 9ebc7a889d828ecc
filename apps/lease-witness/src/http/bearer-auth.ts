import { createMiddleware } from 'hono/factory'
import { bearerToken } from './domain/bearer-tokens.ts'
import { allowList } from './token-allowlist.ts'
import type { HttpEnv } from './types.ts'

/** Kept for the allow-list that the isolate runs with: a new secret is a new deployment. */
let kept: { readonly csv: string | undefined; readonly isAllowed: (token: string) => boolean } | undefined

const isAllowed = (csv: string | undefined, token: string): boolean => {
  if (!kept || kept.csv !== csv) kept = { csv, isAllowed: allowList(csv) }
  return kept.isAllowed(token)
}

/** Lets through who sends one of the allow-list's tokens. */
export const bearerOnly = createMiddleware<HttpEnv>(async (c, next) => {
  const token = bearerToken(c.req.header('Authorization'))
  if (token !== undefined && isAllowed(c.env.BEARER_TOKENS_CSV, token)) return next()
  c.set('outcome', 'unauthorized')
  c.header('WWW-Authenticate', 'Bearer')
  // The contract gives this body to the letter: no detail.
  return c.json({ error: 'unauthorized' }, 401)
})

import { createMiddleware } from 'hono/factory'
import { parseTokenList } from './domain/token-list.ts'
import type { WitnessHttpEnv } from './types.ts'

/** The token of an `Authorization` header (RFC 6750 section 2.1). The scheme is case-insensitive. */
export const parseBearerToken = (authorization: string | undefined): string | undefined =>
  /^bearer +([^ ]+) *$/i.exec(authorization ?? '')?.[1]

const utf8 = new TextEncoder()
/** UTF-8 never contains this byte, so it marks the end of a token. */
const END = 0xff

const toBytes = (token: string, width: number): { readonly bytes: Uint8Array; readonly fits: boolean } => {
  const bytes = new Uint8Array(width).fill(END)
  const { read } = utf8.encodeInto(token, bytes)
  return { bytes, fits: read === token.length }
}

/**
 * Checks a token against a comma-separated list. Compares byte arrays of equal length, and always with every token of the
 * list, so that the timing reveals neither how much of a token was right nor which token matched.
 */
export const createAllowlist = (csv: string | undefined): ((token: string) => boolean) => {
  const tokens = parseTokenList(csv)
  const width = Math.max(0, ...tokens.map(token => utf8.encode(token).byteLength))
  const allowed = tokens.map(token => toBytes(token, width).bytes)
  return token => {
    const { bytes, fits } = toBytes(token, width)
    const matches = allowed.filter(candidate => crypto.subtle.timingSafeEqual(candidate, bytes)).length
    return fits && matches > 0
  }
}

/** Per isolate: a new secret is a new deployment with new isolates. */
let cache: { readonly csv: string | undefined; readonly isAllowed: (token: string) => boolean } | undefined

const isAllowed = (csv: string | undefined, token: string): boolean => {
  if (!cache || cache.csv !== csv) cache = { csv, isAllowed: createAllowlist(csv) }
  return cache.isAllowed(token)
}

/** Rejects a request without a token of the allow-list. */
export const bearerAuth = createMiddleware<WitnessHttpEnv>(async (c, next) => {
  const token = parseBearerToken(c.req.header('Authorization'))
  if (token !== undefined && isAllowed(c.env.BEARER_TOKENS_CSV, token)) return next()
  c.set('outcome', 'unauthorized')
  c.header('WWW-Authenticate', 'Bearer')
  // The contract fixes this body: no detail.
  return c.json({ error: 'unauthorized' }, 401)
})

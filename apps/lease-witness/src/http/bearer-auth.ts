import { createMiddleware } from 'hono/factory'
import type { WitnessSettings } from '../settings.ts'
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

/** In constant time. Web Crypto has no such function on every host. */
const isEqual = (a: Uint8Array, b: Uint8Array): boolean =>
  a.reduce((difference, byte, index) => difference | (byte ^ (b[index] ?? 0)), 0) === 0

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
    const matches = allowed.filter(candidate => isEqual(candidate, bytes)).length
    return fits && matches > 0
  }
}

/** Rejects a request without a token of the allow-list. */
export const bearerAuth = ({ BEARER_TOKENS_CSV }: WitnessSettings) => {
  const isAllowed = createAllowlist(BEARER_TOKENS_CSV)
  return createMiddleware<WitnessHttpEnv>(async (c, next) => {
    const token = parseBearerToken(c.req.header('Authorization'))
    if (token !== undefined && isAllowed(token)) return next()
    c.set('outcome', 'unauthorized')
    c.header('WWW-Authenticate', 'Bearer')
    // The contract fixes this body: no detail.
    return c.json({ error: 'unauthorized' }, 401)
  })
}

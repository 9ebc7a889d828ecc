import { createHash, timingSafeEqual } from 'node:crypto'
import { createMiddleware } from 'hono/factory'
import { problem } from '../errors.ts'
import type { HttpEnv } from '../types.ts'

const digest = (token: string): Buffer => createHash('sha256').update(token).digest()

/**
 * Lets through who sends one of `tokens` as RFC 6750 bearer token. Digests of equal length are compared, each with
 * every allowed one, so that the time taken tells neither how much of a token was right nor which one it was.
 */
export const operatorOnly = (tokens: readonly string[]) => {
  const allowed = tokens.map(digest)
  return createMiddleware<HttpEnv>(async (c, next) => {
    const [, token] = /^bearer +([^ ]+) *$/i.exec(c.req.header('Authorization') ?? '') ?? []
    const given = digest(token ?? '')
    const matches = allowed.filter(one => timingSafeEqual(one, given)).length
    if (token === undefined || matches === 0) {
      c.header('WWW-Authenticate', 'Bearer realm="operator"')
      return problem(c, { kind: 'unauthorized' })
    }
    return next()
  })
}

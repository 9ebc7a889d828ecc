import { randomUUID } from 'node:crypto'
import { createMiddleware } from 'hono/factory'
import type { HttpEnv } from '../types.ts'

/** Ids of this form are safe in a log line and in a header. Hono's own middleware allows fewer characters. */
const SAFE_ID = /^[A-Za-z0-9._:/+=@-]{1,128}$/

/** Gives each request an id: the client's if it is safe, otherwise a new one. */
export const requestId = createMiddleware<HttpEnv>((c, next) => {
  const given = c.req.header('X-Request-Id') ?? ''
  const id = SAFE_ID.test(given) ? given : randomUUID()
  c.set('requestId', id)
  c.header('X-Request-Id', id)
  return next()
})

import { type OperatorSession, sessionRequest } from '@pool/contract'
import { type Context, Hono } from 'hono'
import type { RateLimitDecision } from '../../lib/rate-limiter.ts'
import {
  EXPIRED_SESSION_COOKIES,
  type LiveSession,
  SESSION_IDLE_MS,
  toSessionCookies,
} from '../../operator/domain/session.ts'
import type { OperatorSessions } from '../../operator/sessions.ts'
import { isOneOfTokens } from '../bearer-auth.ts'
import { sendError } from '../errors.ts'
import type { HttpEnv } from '../types.ts'
import { validateJson } from '../validate.ts'

export interface SessionOperations extends Pick<OperatorSessions, 'start' | 'find' | 'end'> {
  /** Counts an attempt of the client with this address. */
  readonly limitAttempts: (address: string | null) => RateLimitDecision
}

const toWire = ({ createdAt, expiresAt }: LiveSession): OperatorSession => ({
  createdAt: createdAt.toISOString(),
  expiresAt: expiresAt.toISOString(),
  idleSeconds: SESSION_IDLE_MS / 1_000,
})

const setCookies = (c: Context<HttpEnv>, cookies: readonly string[]): void => {
  for (const cookie of cookies) c.header('Set-Cookie', cookie, { append: true })
  c.header('Cache-Control', 'no-store')
}

export const sessionRoutes = (sessions: SessionOperations, tokens: readonly string[]) => {
  const isToken = isOneOfTokens(tokens)
  return new Hono<HttpEnv>()
    .post(
      '/',
      async (c, next) => {
        const decision = sessions.limitAttempts(c.env.address)
        if (decision.kind === 'allowed') return next()
        const detail = `Too many attempts; retry in ${decision.retryAfterSeconds} s.`
        return sendError(c, { ...decision, detail })
      },
      validateJson(sessionRequest),
      async c => {
        const { token } = c.req.valid('json')
        if (!isToken(token)) return sendError(c, { kind: 'unauthorized', detail: 'This is not an operator token.' })
        const { id, session } = await sessions.start(token)
        setCookies(c, toSessionCookies(id, c.req.header('Origin')))
        c.env.outcome = 'started'
        return c.json(toWire(session), 201)
      },
    )
    .get('/', c => {
      const session = c.get('session')
      if (!session) return sendError(c, { kind: 'not-found', detail: 'The request has a token instead of a session.' })
      return c.json(toWire(session), 200)
    })
    .delete('/', async c => {
      const session = c.get('session')
      if (session) await sessions.end(session.id)
      setCookies(c, EXPIRED_SESSION_COOKIES)
      c.env.outcome = 'ended'
      return c.body(null, 204)
    })
}

import { type OperatorSession, sessionRequest } from '@pool/contract'
import type { Context } from 'hono'
import {
  EXPIRED_SESSION_COOKIES,
  type LiveSession,
  SESSION_IDLE_MS,
  toSessionCookies,
} from '../../operator/domain/session.ts'
import type { OperatorSessions } from '../../operator/sessions.ts'
import { isOneOfTokens, type LimitFailures, rejectCredential } from '../operator-auth.ts'
import { type Handlers, type HttpEnv, parseBody, sendError } from '../request.ts'

export interface SessionOperations extends Pick<OperatorSessions, 'start' | 'redeemCode' | 'find' | 'end'> {
  readonly limitFailures: LimitFailures
}

const NOT_ACCEPTED = 'This is neither an operator token nor a sign-in code that can still be used.'

const toWire = ({ createdAt, expiresAt }: LiveSession): OperatorSession => ({
  createdAt: createdAt.toISOString(),
  expiresAt: expiresAt.toISOString(),
  idleSeconds: SESSION_IDLE_MS / 1_000,
})

const setCookies = (c: Context<HttpEnv>, cookies: readonly string[]): void => {
  for (const cookie of cookies) c.header('Set-Cookie', cookie, { append: true })
}

export const sessionHandlers = (
  sessions: SessionOperations,
  tokens: readonly string[],
): Pick<Handlers, 'startSession' | 'getSession' | 'endSession'> => {
  const isToken = isOneOfTokens(tokens)
  return {
    startSession: async c => {
      const body = await parseBody(c, sessionRequest)
      if (!body.ok) return sendError(c, body.error)
      const token = isToken(body.value.token) ? body.value.token : await sessions.redeemCode(body.value.token)
      if (token === null) return rejectCredential(c, sessions.limitFailures, NOT_ACCEPTED)
      const { id, session } = await sessions.start(token)
      setCookies(c, toSessionCookies(id, c.req.header('Origin')))
      c.env.outcome = 'started'
      return c.json(toWire(session), 201)
    },
    getSession: c => {
      const session = c.get('session')
      if (!session) return sendError(c, { kind: 'not-found', detail: 'The request has a token instead of a session.' })
      return c.json(toWire(session), 200)
    },
    endSession: async c => {
      const session = c.get('session')
      if (session) await sessions.end(session.id)
      setCookies(c, EXPIRED_SESSION_COOKIES)
      c.env.outcome = 'ended'
      return c.body(null, 204)
    },
  }
}

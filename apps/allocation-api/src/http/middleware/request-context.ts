import { randomUUID } from 'node:crypto'
import { createMiddleware } from 'hono/factory'
import { matchedRoutes } from 'hono/route'
import type { Observer } from '../../observability/domain/observer.ts'
import type { HttpEnv, Listener } from '../types.ts'

/** Ids of this form are safe in a log line and in a header. Hono's own middleware allows fewer characters. */
const SAFE_ID = /^[A-Za-z0-9._:/+=@-]{1,128}$/

/**
 * Sets the variables that every handler reads: the listener, and the request id, which is the client's if it is safe.
 * Reports the request when its response headers are ready.
 */
export const requestContext = (listener: Listener, observer: Pick<Observer, 'onRequest'>) =>
  createMiddleware<HttpEnv>(async (c, next) => {
    const started = performance.now()
    const clientId = c.req.header('X-Request-Id') ?? ''
    const requestId = SAFE_ID.test(clientId) ? clientId : randomUUID()
    c.set('listener', listener)
    c.set('requestId', requestId)
    c.header('X-Request-Id', requestId)
    await next()
    observer.onRequest({
      requestId,
      listener,
      method: c.req.method,
      route: matchedRoutes(c).find(route => !route.path.includes('*'))?.path ?? 'none',
      status: c.res.status,
      outcome: c.get('outcome') ?? '',
      seconds: (performance.now() - started) / 1_000,
    })
  })

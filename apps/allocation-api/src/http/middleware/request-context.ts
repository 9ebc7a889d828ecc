import { randomUUID } from 'node:crypto'
import { createMiddleware } from 'hono/factory'
import { matchedRoutes } from 'hono/route'
import type { Observer } from '../../observability/domain/observer.ts'
import type { HttpEnv, Listener } from '../types.ts'

/** A caller's own id is kept when it can stand in a log line and a header as it is. */
const saneId = /^[A-Za-z0-9._:/+=@-]{1,128}$/

/** Gives each request its id, and tells what came of it. */
export const requestContext = (listener: Listener, observer: Pick<Observer, 'onRequest'>) =>
  createMiddleware<HttpEnv>(async (c, next) => {
    const started = performance.now()
    const given = c.req.header('X-Request-Id') ?? ''
    const requestId = saneId.test(given) ? given : randomUUID()
    c.set('requestId', requestId)
    c.set('listener', listener)
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

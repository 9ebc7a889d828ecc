import { createMiddleware } from 'hono/factory'
import { matchedRoutes } from 'hono/route'
import type { Observer } from '../../observability/domain/observer.ts'
import type { HttpEnv, Listener } from '../types.ts'

/** Reports each request when its response headers are ready. */
export const accessLog = (listener: Listener, observer: Pick<Observer, 'onRequest'>) =>
  createMiddleware<HttpEnv>(async (c, next) => {
    const started = performance.now()
    c.set('listener', listener)
    await next()
    observer.onRequest({
      requestId: c.get('requestId'),
      listener,
      method: c.req.method,
      route: matchedRoutes(c).find(route => !route.path.includes('*'))?.path ?? 'none',
      status: c.res.status,
      outcome: c.get('outcome') ?? '',
      seconds: (performance.now() - started) / 1_000,
    })
  })

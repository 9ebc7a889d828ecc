import { Hono } from 'hono'
import { bearerAuth } from './http/bearer-auth.ts'
import { drainLeasesRoutes } from './http/drain-leases.ts'
import { errorResponse, logUnexpected } from './http/errors.ts'
import { healthRoutes } from './http/health.ts'
import { historyRoutes } from './http/history.ts'
import { leaseRoutes } from './http/lease.ts'
import { listLeasesRoutes } from './http/list-leases.ts'
import { accessLog, rawPath, readBody, requireBody, requireHost } from './http/middleware.ts'
import { renewLeasesRoutes } from './http/renew-leases.ts'
import type { Services, WitnessHttpEnv } from './http/types.ts'
import type { WitnessSettings } from './settings.ts'

const RESOURCES = [
  { pattern: /^\/lease\/./s, methods: 'GET, HEAD, PUT, DELETE, OPTIONS' },
  { pattern: /^\/history\/./s, methods: 'GET, HEAD, OPTIONS' },
  { pattern: /^\/leases$/, methods: 'GET, HEAD, OPTIONS' },
  { pattern: /^\/leases\/renew$/, methods: 'POST, OPTIONS' },
  { pattern: /^\/healthz$/, methods: 'GET, HEAD, OPTIONS' },
] as const

const DRAIN = { pattern: /^\/leases\/drain$/, methods: 'POST, OPTIONS' } as const

/** The witness over HTTP, for any host. */
export const createApp = (settings: WitnessSettings, services: Services): Hono<WitnessHttpEnv> => {
  const resources = services.drain ? [...RESOURCES, DRAIN] : RESOURCES
  const allowedMethods = (path: string): string | undefined =>
    resources.find(({ pattern }) => pattern.test(path))?.methods

  const app = new Hono<WitnessHttpEnv>({ getPath: rawPath })
  app.use(accessLog(settings))
  app.use(readBody)
  app.use(requireHost)
  // Before authentication: a CORS preflight carries no token.
  app.options('*', c => {
    const methods = allowedMethods(c.req.path)
    if (!methods) return errorResponse(c, { code: 'not-found' })
    c.header('Allow', methods)
    c.set('outcome', 'options')
    return c.body(null, 204)
  })
  // Before authentication: a probe carries no token.
  app.route('/healthz', healthRoutes(services))
  app.use(bearerAuth(settings, services))
  app.use(requireBody)
  app.route('/lease', leaseRoutes(settings, services))
  app.route('/history', historyRoutes(services))
  app.route('/leases', listLeasesRoutes(services))
  app.route('/leases/renew', renewLeasesRoutes(services))
  if (services.drain) app.route('/leases/drain', drainLeasesRoutes(services.drain))
  app.notFound(c => {
    const methods = allowedMethods(c.req.path)
    if (!methods) return errorResponse(c, { code: 'not-found' })
    c.header('Allow', methods)
    return errorResponse(c, { code: 'method-not-allowed' })
  })
  app.onError((error, c) => {
    logUnexpected(c, error)
    return errorResponse(c, { code: 'internal-error' })
  })
  return app
}

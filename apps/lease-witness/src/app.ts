import { leaseListQuery, leaseStatusQuery, readLeaseQuery } from '@pool/contract/lease'
import { BodyError } from '@pool/runtime/service/body-error'
import { Hono } from 'hono'
import { bearerAuth } from './http/bearer-auth.ts'
import { drainLeasesRoutes } from './http/drain-leases.ts'
import { errorResponse, logUnexpected } from './http/errors.ts'
import { healthRoutes } from './http/health.ts'
import { historyRoutes, leaseRoutes } from './http/lease.ts'
import { listLeasesRoutes } from './http/list-leases.ts'
import {
  accessLog,
  bodyErrorResponse,
  drainBody,
  rawPath,
  rejectUnknownParameters,
  requireBodyOfRead,
  requireHost,
} from './http/middleware.ts'
import { renewLeasesRoutes } from './http/renew-leases.ts'
import type { Services, WitnessHttpEnv } from './http/types.ts'
import { log } from './log.ts'
import { findSettingsIssues, type WitnessSettings } from './settings.ts'

const RESOURCES = [
  {
    route: '/lease/:slot',
    pattern: /^\/lease\/./s,
    methods: 'GET, HEAD, PUT, DELETE, OPTIONS',
    query: Object.keys(readLeaseQuery.shape),
  },
  { route: '/history/:slot', pattern: /^\/history\/./s, methods: 'GET, HEAD, OPTIONS' },
  {
    route: '/leases',
    pattern: /^\/leases$/,
    methods: 'GET, HEAD, OPTIONS',
    query: Object.keys({ ...leaseListQuery.shape, ...leaseStatusQuery.shape }),
  },
  { route: '/leases/renew', pattern: /^\/leases\/renew$/, methods: 'POST, OPTIONS' },
  { route: '/healthz', pattern: /^\/healthz$/, methods: 'GET, HEAD, OPTIONS', query: 'ignored' },
] satisfies Resource[]

const DRAIN = { route: '/leases/drain', pattern: /^\/leases\/drain$/, methods: 'POST, OPTIONS' } as const
const METRICS = {
  route: '/metrics',
  pattern: /^\/metrics$/,
  methods: 'GET, HEAD, OPTIONS',
  query: 'ignored',
} satisfies Resource

interface Resource {
  readonly route: string
  readonly pattern: RegExp
  readonly methods: string
  /** The parameters that a read takes; none by default. A write takes none. */
  readonly query?: readonly string[] | 'ignored'
}

/** The witness over HTTP, for any host. */
export const createApp = (settings: WitnessSettings, services: Services): Hono<WitnessHttpEnv> => {
  // Here, because a deployed worker has no start that could fail.
  for (const { variable, detail } of findSettingsIssues(settings))
    log(settings, 'error', { msg: 'invalid-settings', detail: `${variable} ${detail}` })
  const { metrics } = services
  const resources = [...RESOURCES, ...(services.drain ? [DRAIN] : []), ...(metrics ? [METRICS] : [])]
  const findResource = (path: string): Resource | undefined => resources.find(({ pattern }) => pattern.test(path))
  const allowedMethods = (path: string): string | undefined => findResource(path)?.methods

  const app = new Hono<WitnessHttpEnv>({ getPath: rawPath })
  app.use(accessLog(settings, { onRequest: services.onRequest, toRoute: path => findResource(path)?.route ?? 'none' }))
  app.use(drainBody)
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
  app.use(requireBodyOfRead)
  app.use(
    rejectUnknownParameters((path, method) => {
      const { methods = '', query = [] } = findResource(path) ?? {}
      if (query === 'ignored' || !methods.split(', ').includes(method)) return undefined
      return method === 'GET' || method === 'HEAD' ? query : []
    }),
  )
  app.route('/lease', leaseRoutes(settings, services))
  app.route('/history', historyRoutes(services))
  app.route('/leases', listLeasesRoutes(services))
  app.route('/leases/renew', renewLeasesRoutes(services))
  if (services.drain) app.route('/leases/drain', drainLeasesRoutes(services.drain))
  if (metrics) {
    app.get('/metrics', async c => {
      c.set('outcome', 'read')
      c.set('isRoutine', true)
      return c.body(await metrics.text(), 200, { 'Content-Type': metrics.contentType })
    })
  }
  app.notFound(c => {
    const methods = allowedMethods(c.req.path)
    if (!methods) return errorResponse(c, { code: 'not-found' })
    c.header('Allow', methods)
    return errorResponse(c, { code: 'method-not-allowed', detail: `This path has only ${methods}.` })
  })
  app.onError((error, c) => {
    if (error instanceof BodyError) return bodyErrorResponse(c, error)
    logUnexpected(c, error)
    return errorResponse(c, { code: 'internal-error' })
  })
  return app
}

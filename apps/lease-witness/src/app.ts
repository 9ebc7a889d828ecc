import { Hono } from 'hono'
import { bearerOnly } from './http/bearer-auth.ts'
import { takeBody, wholeBody } from './http/body.ts'
import type { Deps } from './http/context.ts'
import { problem } from './http/errors.ts'
import { historyRoutes } from './http/history.ts'
import { leaseRoutes } from './http/lease.ts'
import { leasesRoutes } from './http/list-leases.ts'
import { requestContext } from './http/request-context.ts'
import type { HttpEnv } from './http/types.ts'
import { log } from './log.ts'

const resources = [
  { pattern: /^\/lease\/./s, methods: 'GET, HEAD, PUT, DELETE, OPTIONS' },
  { pattern: /^\/history\/./s, methods: 'GET, HEAD, OPTIONS' },
  { pattern: /^\/leases$/, methods: 'GET, HEAD, OPTIONS' },
] as const

const methodsOf = (path: string): string | undefined => resources.find(({ pattern }) => pattern.test(path))?.methods

/** No request has it by itself. */
const NO_PATH = ''

/**
 * The path as it came: `%2F` and `/` are told apart here, and every slot is decoded once, by us. A `Host` that is none
 * makes an address that no URL can be; what throws here is answered by the platform, with a bare 500.
 */
const rawPath = (request: Request): string => URL.parse(request.url)?.pathname ?? NO_PATH

export const createApp = (deps: Deps): Hono<HttpEnv> => {
  const app = new Hono<HttpEnv>({ getPath: rawPath })
  app.use(requestContext)
  app.use(takeBody)
  // RFC 9112 section 3.2: an invalid Host is 400, whoever sends it.
  app.use((c, next) =>
    c.req.path === NO_PATH
      ? Promise.resolve(problem(c, { kind: 'invalid-request', detail: 'The Host header must be a host name.' }))
      : next(),
  )
  // Before the token is asked for: a preflight cannot carry one.
  app.options('*', c => {
    const methods = methodsOf(c.req.path)
    if (!methods) return problem(c, { kind: 'not-found' })
    c.header('Allow', methods)
    c.set('outcome', 'options')
    return c.body(null, 204)
  })
  app.use(bearerOnly)
  app.use(wholeBody)
  app.route('/lease', leaseRoutes(deps))
  app.route('/history', historyRoutes(deps))
  app.route('/leases', leasesRoutes(deps))
  app.notFound(c => {
    const methods = methodsOf(c.req.path)
    if (!methods) return problem(c, { kind: 'not-found' })
    c.header('Allow', methods)
    return problem(c, { kind: 'method-not-allowed' })
  })
  app.onError((error, c) => {
    const { name, message, stack } = error
    log(c.env, 'error', { msg: 'failed', requestId: c.get('requestId'), error: { name, message, stack } })
    return problem(c, { kind: 'internal-error' })
  })
  return app
}

import { randomBytes } from 'node:crypto'
import { isRecordsPath, operations } from '@pool/contract'
import type { Hono } from 'hono'
import type { Result } from 'hono/router'
import type { H, RouterRoute } from 'hono/types'
import { getPath } from 'hono/utils/url'
import type { RateLimitDecision } from '../lib/rate-limiter.ts'
import { type Observer, PROBE_ROUTES, toRoute } from '../observability/domain/observer.ts'
import type { Tracer } from '../observability/domain/tracer.ts'
import { isConsolePath } from './console-files.ts'
import {
  createErrorResponse,
  type ErrorOutcome,
  type HttpEnv,
  type Listener,
  type NodeExchange,
  RequestContext,
} from './request.ts'
import { type BrowserPolicy, type ClientAddress, rejectForeignHost, rejectForeignPage } from './sender.ts'

/** Ids of this form are safe in a log line and in a header. Hono's own middleware allows fewer characters. */
const SAFE_ID = /^[A-Za-z0-9._:/+=@-]{1,128}$/

const PROCESS_ID = randomBytes(12).toString('hex')
let requestCount = 0

/** An id that no other request has, of any process. Cheaper than a UUID. */
const createRequestId = (): string => {
  requestCount += 1
  return `${PROCESS_ID}-${requestCount}`
}

/** Responds to the requests of a listener. */
export interface App {
  fetch(request: Request, exchange: NodeExchange): Promise<Response>
}

/** Counts a write of the client with this address. */
export type LimitWrites = (address: string | null) => RateLimitDecision

export interface RequestHandling {
  readonly listener: Listener
  readonly clientAddress: ClientAddress
  readonly observer: Pick<Observer, 'onRequest' | 'onShortKey'>
  /** Null: tracing is off. */
  readonly tracer: Tracer | null
  /** Null: web pages may send every request. */
  readonly browsers: BrowserPolicy | null
  /** Null: clients can write as often as they want. */
  readonly limitWrites: LimitWrites | null
}

type Rules = Pick<RequestHandling, 'browsers' | 'limitWrites'>

const isRead = (method: string): boolean => method === 'GET' || method === 'HEAD' || method === 'OPTIONS'

const rejectFrequentWrite = ({ request, address }: RequestContext, limitWrites: LimitWrites): ErrorOutcome | null => {
  if (isRead(request.method)) return null
  const decision = limitWrites(address)
  if (decision.kind === 'allowed') return null
  const { retryAfterSeconds } = decision
  const detail = `Too many writes from your address (PDM_CLIENT_WRITES_PER_MINUTE); retry in ${retryAfterSeconds} s.`
  return { kind: 'rate-limited', retryAfterSeconds, detail }
}

const DEPLOYMENT_ROUTE = toRoute(operations.getDeployment.path)
const DEPLOYMENT_URL = /^[^/]*\/\/[^/]*\/api\/v1\/deployments\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:[/?]|$)/i

/** The deployment that a request is about; undefined if the URL has none, or something else in its place. */
const toDeploymentId = (route: string, url: string): string | undefined =>
  route.startsWith(DEPLOYMENT_ROUTE) ? DEPLOYMENT_URL.exec(url)?.[1]?.toLowerCase() : undefined

/** Also percent-encoded, as the URL Standard resolves them. */
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:[/?#]|$)/i

/**
 * Whether the path leaves the prefix of tenants by dot segments. A gateway that exposes the prefix only, and compares it before
 * it resolves them, would expose every route.
 */
const leavesRecords = ({ incoming }: RequestContext, path: string): boolean => {
  const url = incoming?.url ?? ''
  if (!DOT_SEGMENT.test(url) || isRecordsPath(path)) return false
  const [sent = ''] = url.replace(/^https?:\/\/[^/]*/i, '').split(/[?#]/)
  const decoded = sent.replaceAll(/%[0-7][0-9a-f]/gi, decodeURIComponent)
  return isRecordsPath(decoded)
}

/** Why a request does not reach the routes; null: it does. */
const findRejection = (context: RequestContext, { browsers, limitWrites }: Rules): ErrorOutcome | null => {
  if (browsers === null) return null
  const path = getPath(context.request)
  if (leavesRecords(context, path)) return { kind: 'not-found', detail: 'Send the path without dot segments.' }
  // Probes and Prometheus use addresses.
  const foreign = PROBE_ROUTES.has(path) ? null : rejectForeignHost(context, browsers.allowedHosts)
  // Pages of other origins can link to the console. Its files have no data.
  const isConsole = context.listener === 'operator' && isConsolePath(path)
  const rejection = foreign ?? (isConsole ? null : rejectForeignPage(context, browsers))
  return rejection ?? (limitWrites && rejectFrequentWrite(context, limitWrites))
}

/** Sets the route of the request, and returns its response, which may not be ready yet. */
type Dispatch = (context: RequestContext) => Response | Promise<Response>

/**
 * Passes requests to the routes. It is not middleware, because with middleware Hono composes a chain of functions for each
 * request.
 */
const createDispatch = (routes: Hono<HttpEnv>, rules: Rules): Dispatch => {
  const { router } = routes
  let lastMatch: Result<[H, RouterRoute]> = [[]]
  const match: typeof router.match = (method, path) => {
    lastMatch = router.match(method, path)
    return lastMatch
  }
  routes.router = { name: router.name, add: router.add.bind(router), match }
  const findRoute = (): string => {
    // Without a route, the last match is middleware.
    const path = lastMatch[0].at(-1)?.[0][1].path ?? '*'
    return path.endsWith('*') ? 'none' : path
  }
  return context => {
    const { request } = context
    const rejection = findRejection(context, rules)
    if (rejection) match(request.method === 'HEAD' ? 'GET' : request.method, getPath(request))
    // Hono looks up the route before it returns.
    const response = rejection ? createErrorResponse(context, rejection) : routes.fetch(request, context)
    context.route = findRoute()
    return response
  }
}

/** Runs the handlers in a span that continues the trace of the client. */
const traceRequest = (context: RequestContext, tracer: Tracer, dispatch: Dispatch): Promise<Response> => {
  const traceparent = context.header('traceparent')
  const parent = traceparent === undefined ? undefined : { traceparent, tracestate: context.header('tracestate') }
  const { method } = context.request
  return tracer.run(method, { kind: 'server', parent, attributes: { 'http.request.method': method } }, async span => {
    const response = await dispatch(context)
    span.rename(`${method} ${context.route}`)
    span.setAttributes({
      'http.route': context.route,
      'http.response.status_code': response.status,
      'pdm.listener': context.listener,
      'pdm.request_id': context.requestId,
      'pdm.outcome': context.outcome,
    })
    return response
  })
}

/**
 * Gives each request the context that its handlers read, and reports the request when its response headers are ready. The
 * request id is the client's if it is safe.
 */
export const handleRequests = (
  routes: Hono<HttpEnv>,
  { listener, clientAddress, observer, tracer, ...rules }: RequestHandling,
): App => {
  const dispatch = createDispatch(routes, rules)
  return {
    async fetch(request, exchange) {
      const started = performance.now()
      const context = new RequestContext(request, listener, exchange)
      const clientId = context.header('x-request-id') ?? ''
      const requestId = SAFE_ID.test(clientId) ? clientId : createRequestId()
      context.requestId = requestId
      if (exchange.outgoing) exchange.outgoing.requestId = requestId
      const peer = exchange.incoming?.socket.remoteAddress ?? null
      const address = clientAddress(peer, name => context.header(name))
      context.address = address
      const isTraced = tracer !== null && !PROBE_ROUTES.has(getPath(request))
      const response = await (isTraced ? traceRequest(context, tracer, dispatch) : dispatch(context))
      const { route, outcome, cause, deployment, hasShortKey } = context
      if (hasShortKey) observer.onShortKey(address)
      observer.onRequest({
        requestId,
        listener,
        address,
        deployment: deployment ?? toDeploymentId(route, request.url),
        method: request.method,
        route,
        status: response.status,
        outcome,
        cause,
        seconds: (performance.now() - started) / 1_000,
      })
      if (!exchange.outgoing) response.headers.set('X-Request-Id', requestId)
      return response
    },
  }
}

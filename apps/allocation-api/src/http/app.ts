import { randomBytes } from 'node:crypto'
import { type Context, Hono, type Next } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { createMiddleware } from 'hono/factory'
import { HTTPException } from 'hono/http-exception'
import { routePath } from 'hono/route'
import { METHOD_NAME_ALL } from 'hono/router'
import { RegExpRouter } from 'hono/router/reg-exp-router'
import { SmartRouter } from 'hono/router/smart-router'
import { TrieRouter } from 'hono/router/trie-router'
import type { AllocationService } from '../allocation/service.ts'
import type { CredentialService } from '../credentials/service.ts'
import type { Observer } from '../observability/domain/observer.ts'
import { PROBE_ROUTES, toDeploymentId } from '../observability/domain/request-log.ts'
import type { Tracer } from '../observability/domain/tracer.ts'
import type { Reconciler } from '../reconciler/reconciler.ts'
import type { Transfer } from '../transfer/transfer.ts'
import { type BrowserPolicy, rejectForeignPages } from './browser-requests.ts'
import type { ClientAddress } from './client-address.ts'
import { serveConsole } from './console-files.ts'
import { RETRY_AFTER_S, sendError } from './errors.ts'
import { identifyResponse, readHeader } from './headers.ts'
import { requireOperator, SESSION_PATH } from './operator-auth.ts'
import { allocationListRoutes } from './routes/allocation-lists.ts'
import { allocationRoutes, coolOffRoutes } from './routes/allocations.ts'
import { type BucketOperations, bucketRoutes } from './routes/buckets.ts'
import { convergeRoutes } from './routes/converge.ts'
import { credentialRoutes, type KnownProviders } from './routes/credentials.ts'
import {
  type DeploymentOperations,
  deploymentHistoryRoutes,
  deploymentListRoutes,
  deploymentRoutes,
  deploymentUnlockRoutes,
} from './routes/deployments.ts'
import { docsRoutes } from './routes/docs.ts'
import { type DomainOperations, domainCheckRoutes, domainRoutes } from './routes/domains.ts'
import { type HealthDependencies, healthRoutes, type MetricsSource } from './routes/health.ts'
import { type NameOperations, nameRoutes, nameSearchRoutes } from './routes/names.ts'
import { leaseRoutes, type OperatorView, operatorViewRoutes } from './routes/operator-view.ts'
import { type SessionOperations, sessionRoutes } from './routes/session.ts'
import { IMPORT_PATH, transferRoutes } from './routes/transfer.ts'
import type { ListStreams, StreamLimiter } from './streams.ts'
import type { HttpEnv, Listener, OnStreamError } from './types.ts'
import { isBodyLimitError, isBodyTruncated } from './validate.ts'

export interface AppDependencies {
  readonly allocations: Pick<
    AllocationService,
    'check' | 'get' | 'reserve' | 'commit' | 'update' | 'renew' | 'release' | 'liftCoolOff' | 'list' | 'history'
  >
  /** Whether an address in 127/8 can be that of a load balancer. */
  readonly acceptsLoopback: boolean
  readonly reconciler: Pick<
    Reconciler,
    'preview' | 'repair' | 'republish' | 'changeOrphans' | 'resume' | 'listFormerRecords'
  >
  readonly deployments: DeploymentOperations
  readonly buckets: BucketOperations
  readonly domains: DomainOperations
  readonly credentials: CredentialService
  readonly transfer: Transfer
  readonly sessions: SessionOperations
  readonly names: NameOperations
  readonly operatorView: OperatorView
  /** The folder of the console's build. */
  readonly consoleFolder: string
  /** The responses that can be open at the same time, of both listeners. */
  readonly streams: { readonly logs: StreamLimiter; readonly lists: StreamLimiter; readonly changes: StreamLimiter }
  readonly providers: KnownProviders
  readonly health: HealthDependencies
  readonly metrics: MetricsSource
  readonly browsers: BrowserPolicy
  readonly clientAddress: ClientAddress
  readonly reservedLabels: readonly string[]
  readonly observer: Pick<Observer, 'onRequest' | 'onRequestFailed' | 'onResponseAborted'>
  /** Null: tracing is off. */
  readonly tracer: Tracer | null
  /** Whether an error that no operation expects means that a dependency is down: 503 instead of 500. */
  readonly isUnavailable: (error: unknown) => boolean
  /** Whether such an error means that the database accepts no writes: the statement had no effect. */
  readonly isReadOnly: (error: unknown) => boolean
  /** Whether such an error means that a write certainly had no effect. */
  readonly isNotWritten: (error: unknown) => boolean
}

const NOT_WRITTEN =
  'The database did not execute the write: it is not reachable, or the row stayed locked. Nothing changed; retry later.'

export interface AppOptions {
  readonly listener: Listener
  /** Bearer tokens, of which a request needs one; null: no request needs one. */
  readonly tokens: readonly string[] | null
  /** Whether this listener has the lists: `list` and `history` of a pool, and the deployments. */
  readonly exposeLists: boolean
}

/** Ids of this form are safe in a log line and in a header. Hono's own middleware allows fewer characters. */
const SAFE_ID = /^[A-Za-z0-9._:/+=@-]{1,128}$/

const PROCESS_ID = randomBytes(12).toString('hex')
let requestCount = 0

/** An id that no other request has, of any process. A UUID would be a twentieth of the JavaScript of a small request. */
const createRequestId = (): string => {
  requestCount += 1
  return `${PROCESS_ID}-${requestCount}`
}

/** Runs the handlers in a span that continues the trace of the client. */
const traceRequest = (c: Context<HttpEnv>, tracer: Tracer, next: Next, toRoute: () => string): Promise<void> => {
  const traceparent = c.req.header('traceparent')
  const parent = traceparent === undefined ? undefined : { traceparent, tracestate: c.req.header('tracestate') }
  const { method } = c.req
  return tracer.run(method, { kind: 'server', parent, attributes: { 'http.request.method': method } }, async span => {
    await next()
    const route = toRoute()
    span.rename(`${method} ${route}`)
    span.setAttributes({
      'http.route': route,
      'http.response.status_code': c.res.status,
      'pdm.listener': c.get('listener'),
      'pdm.request_id': c.get('requestId'),
      'pdm.outcome': c.get('outcome') ?? '',
    })
  })
}

/**
 * Sets the variables that every handler reads: the listener, the address of the client, and the request id, which is the
 * client's if it is safe.
 * Reports the request when its response headers are ready.
 */
export const requestContext = (
  listener: Listener,
  {
    clientAddress,
    observer,
    tracer,
  }: Pick<AppDependencies, 'clientAddress' | 'tracer'> & { readonly observer: Pick<Observer, 'onRequest'> },
) =>
  createMiddleware<HttpEnv>(async (c, next) => {
    const started = performance.now()
    const clientId = readHeader(c, 'x-request-id') ?? ''
    const requestId = SAFE_ID.test(clientId) ? clientId : createRequestId()
    c.set('listener', listener)
    c.set('requestId', requestId)
    identifyResponse(c, requestId)
    const address = clientAddress(c.env?.incoming?.socket.remoteAddress ?? null, name => c.req.header(name))
    c.set('address', address)
    const toRoute = () => {
      // Without a route, the last match is middleware.
      const path = routePath(c, -1)
      return path.endsWith('*') ? 'none' : path
    }
    await (tracer && !PROBE_ROUTES.has(c.req.path) ? traceRequest(c, tracer, next, toRoute) : next())
    const route = toRoute()
    observer.onRequest({
      requestId,
      listener,
      address,
      deployment: c.get('deployment') ?? toDeploymentId(route, c.req.path),
      method: c.req.method,
      route,
      status: c.res.status,
      outcome: c.get('outcome') ?? '',
      cause: c.get('cause'),
      seconds: (performance.now() - started) / 1_000,
    })
  })

const LIST_PATH = /^\/api\/v1\/(?:pool\/[^/]+\/(?:list|history)|deployments)$/
const NO_LISTS =
  'This listener does not serve lists (PDM_OPERATOR_ONLY_LIST); send the request to the operator listener.'

const MAX_BODY_BYTES = 64 * 1_024

/** The SQLSTATE or system code of a database error. Those without a code have a text of this service. */
const toCause = (error: Error): string =>
  'code' in error && typeof error.code === 'string' ? error.code : error.message

const sendTooLarge = (c: Context<HttpEnv>) => {
  // The rest of the body is not read, so the connection cannot be reused.
  c.header('Connection', 'close')
  return sendError(c, { kind: 'body-too-large' })
}

/** The API on one listener. */
export const createApp = (deps: AppDependencies, { listener, tokens, exposeLists }: AppOptions): Hono<HttpEnv> => {
  const { observer } = deps
  const app = new Hono<HttpEnv>()
  app.use(requestContext(listener, deps))
  const isOperator = listener === 'operator'
  // First, so that pages of other origins can link to it. Its files have no data.
  if (isOperator) app.use(serveConsole(deps.consoleFolder))
  app.use(rejectForeignPages(deps.browsers))
  if (tokens) app.use(requireOperator(tokens, deps.sessions))
  const limitStream = bodyLimit({ maxSize: MAX_BODY_BYTES, onError: sendTooLarge })
  app.use((c, next) => {
    // It is read as a stream.
    if (isOperator && c.req.path === IMPORT_PATH) return next()
    // Counting the bytes of a stream is slow, so a declared length is compared instead.
    if (readHeader(c, 'transfer-encoding') !== undefined) return limitStream(c, next)
    return Number(readHeader(c, 'content-length') ?? 0) > MAX_BODY_BYTES ? Promise.resolve(sendTooLarge(c)) : next()
  })
  const onStreamError: OnStreamError = (error, id) =>
    deps.isUnavailable(error) ? observer.onResponseAborted(error, id) : observer.onRequestFailed(error, id)
  const lists: ListStreams = { limiter: deps.streams.lists, onStreamError }

  app.route('/', healthRoutes(deps.health, deps.metrics))
  app.route('/', docsRoutes())
  app.get('/api/v1/reserved', c => c.json({ reserved: deps.reservedLabels }, 200))
  app.route('/api/v1/pool', allocationRoutes(deps.allocations, { acceptsLoopback: deps.acceptsLoopback, isOperator }))
  if (isOperator) {
    app.route('/api/v1/deployments', deploymentHistoryRoutes(deps.deployments, lists))
    app.route('/api/v1/buckets', bucketRoutes(deps.buckets, lists))
    app.route('/api/v1/domains', domainCheckRoutes(deps.domains))
  }
  app.route('/api/v1/deployments', deploymentRoutes(deps.deployments, deps.streams.logs, onStreamError))
  app.route('/api/v1/domains', domainRoutes(deps.domains))
  app.route('/api/v1/credentials', credentialRoutes(deps.credentials, deps.providers))
  if (exposeLists) {
    app.route('/api/v1/pool', allocationListRoutes(deps.allocations, lists))
    app.route('/api/v1/deployments', deploymentListRoutes(deps.deployments, lists))
  }
  if (isOperator) {
    app.route(SESSION_PATH, sessionRoutes(deps.sessions, tokens ?? []))
    app.route('/api/v1', operatorViewRoutes(deps.operatorView, deps.streams.changes, onStreamError))
    app.route('/api/v1/names', nameSearchRoutes(deps.names))
    app.route('/api/v1/pool', nameRoutes(deps.names))
    app.route('/api/v1/leases', leaseRoutes(deps.operatorView.witness))
    app.route('/api/v1', transferRoutes(deps.transfer, lists))
    app.route('/api/v1/pool', convergeRoutes(deps.reconciler))
    app.route('/api/v1/pool', coolOffRoutes(deps.allocations))
    app.route('/api/v1/deployments', deploymentUnlockRoutes(deps.deployments))
  }

  // The method of each route by its path, so that one lookup finds all. Hono's middleware for 405 also looks up every request
  // that has a route.
  const methods = new SmartRouter<string>({ routers: [new RegExpRouter(), new TrieRouter()] })
  for (const { method, path } of app.routes) if (method !== METHOD_NAME_ALL) methods.add(METHOD_NAME_ALL, path, method)
  const listAllowed = (path: string): readonly string[] => {
    const [matched] = methods.match(METHOD_NAME_ALL, path)
    if (matched.length === 0) return []
    const found = new Set(matched.map(([method]) => method))
    return [...(found.has('GET') ? found.add('HEAD') : found)].toSorted()
  }
  // Not as middleware, so that it costs the existing routes nothing.
  app.notFound(c => {
    const isList = !exposeLists && LIST_PATH.test(c.req.path)
    const allowed = listAllowed(c.req.path)
    if (allowed.length === 0) return sendError(c, { kind: 'not-found', detail: isList ? NO_LISTS : 'No such route.' })
    c.header('Allow', allowed.join(', '))
    const hint = isList && c.req.method === 'GET' ? { detail: NO_LISTS } : {}
    return sendError(c, { kind: 'method-not-allowed', ...hint })
  })
  app.onError((error, c) => {
    // Thrown by the bearer authentication.
    if (error instanceof HTTPException) return error.getResponse()
    if (isBodyLimitError(error)) return sendTooLarge(c)
    if (isBodyTruncated(c)) return sendError(c, { kind: 'invalid-json', detail: 'The request body was truncated.' })
    if (deps.isUnavailable(error)) c.set('cause', toCause(error))
    if (deps.isReadOnly(error)) {
      return sendError(c, { kind: 'database-read-only', retryAfterSeconds: RETRY_AFTER_S })
    }
    if (deps.isNotWritten(error)) return sendError(c, { kind: 'database-unavailable', detail: NOT_WRITTEN })
    if (deps.isUnavailable(error)) return sendError(c, { kind: 'database-unavailable' })
    observer.onRequestFailed(error, c.get('requestId'))
    return sendError(c, { kind: 'internal-error' })
  })
  return app
}

import { type Health, NO_ROUTE, operationList, type Probe } from '@pool/contract'
import { type Context, Hono } from 'hono'
import { HTTPException } from 'hono/http-exception'
import { METHOD_NAME_ALL } from 'hono/router'
import { RegExpRouter } from 'hono/router/reg-exp-router'
import { SmartRouter } from 'hono/router/smart-router'
import { TrieRouter } from 'hono/router/trie-router'
import type { AllocationService } from '../allocation/service.ts'
import type { CredentialService } from '../credentials/service.ts'
import type { DeploymentOperations } from '../deployments/service.ts'
import type { PageQueue } from '../lib/paginate.ts'
import type { Observer } from '../observability/domain/observer.ts'
import type { Tracer } from '../observability/domain/tracer.ts'
import type { Reconciler } from '../reconciler/reconciler.ts'
import type { TenantRecords } from '../records/domain/types.ts'
import type { Transfer } from '../transfer/transfer.ts'
import { serveConsole } from './console-files.ts'
import { type App, handleRequests, type LimitWrites } from './handle-requests.ts'
import { requireOperator, requireTokenAtStart } from './operator-auth.ts'
import {
  addRoutes,
  type Handlers,
  type HttpEnv,
  type Listener,
  type OnStreamError,
  RETRY_AFTER_S,
  sendError,
  toBodyOutcome,
} from './request.ts'
import { allocationListHandlers } from './routes/allocation-lists.ts'
import { allocationHandlers } from './routes/allocations.ts'
import { type BucketOperations, bucketHandlers } from './routes/buckets.ts'
import { convergeHandlers } from './routes/converge.ts'
import { credentialHandlers, type KnownProviders } from './routes/credentials.ts'
import { deploymentHandlers } from './routes/deployments.ts'
import { docsHandlers } from './routes/docs.ts'
import { type DomainOperations, domainHandlers } from './routes/domains.ts'
import { type HealthDependencies, healthHandlers, type MetricsSource } from './routes/health.ts'
import type { NamePlanning } from './routes/name-plan.ts'
import { type NameOperations, nameHandlers } from './routes/names.ts'
import { leaseHandlers, type OperatorView, operatorViewHandlers } from './routes/operator-view.ts'
import { type SessionOperations, sessionHandlers } from './routes/session.ts'
import { acmeHandlers } from './routes/tenant-records/acme.ts'
import { externalDnsHandlers } from './routes/tenant-records/external-dns.ts'
import { tenantRecordHandlers } from './routes/tenant-records/records.ts'
import { tokenHandlers } from './routes/tenant-records/tokens.ts'
import { transferHandlers } from './routes/transfer.ts'
import type { BrowserPolicy, ClientAddress } from './sender.ts'
import type { ListStreams, StreamLimiter } from './streams.ts'

export interface StreamLimiters {
  readonly logs: StreamLimiter
  readonly lists: StreamLimiter
  readonly changes: StreamLimiter
  readonly files: StreamLimiter
  /** Of the pages of lists. */
  readonly inTurn: PageQueue
}

export interface AppDependencies {
  readonly allocations: AllocationService
  /** Whether an address in 127/8 can be that of a load balancer. */
  readonly acceptsLoopback: boolean
  readonly reconciler: Reconciler
  readonly deployments: DeploymentOperations
  readonly buckets: BucketOperations
  readonly domains: DomainOperations
  readonly credentials: CredentialService
  readonly transfer: Transfer
  readonly sessions: SessionOperations
  readonly names: NameOperations
  readonly planning: NamePlanning
  readonly records: TenantRecords
  /** Where tools of tenants reach this service; null: not configured. */
  readonly recordsUrl: string | null
  readonly operatorView: OperatorView
  /** The folder of the console's build. */
  readonly consoleFolder: string
  /** The responses that can be open at the same time. */
  readonly streams: Readonly<Record<Listener, StreamLimiters>>
  readonly providers: KnownProviders
  readonly health: HealthDependencies
  readonly metrics: MetricsSource
  readonly browsers: BrowserPolicy
  readonly clientAddress: ClientAddress
  /** Of clients of the in-cluster listener; null: no limit. */
  readonly limitWrites: LimitWrites | null
  readonly reservedLabels: readonly string[]
  readonly observer: Pick<Observer, 'onRequest' | 'onShortKey' | 'onRequestFailed' | 'onResponseAborted'>
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

const LIST_PATHS = operationList
  .filter(({ listener }) => listener === 'list')
  .map(({ path }) => new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`))
const NO_ROUTE_DETAIL = `${NO_ROUTE}: a path begins with /api/v1 and has no slash at its end. /docs lists the routes of this listener.`
const READ_UNAVAILABLE = 'The database did not respond. A read changes nothing: repeat it.'
const NO_LISTS =
  'This listener does not serve lists (PDM_OPERATOR_ONLY_LIST); send the request to the operator listener.'

/** The SQLSTATE or system code of a database error. Those without a code have a text of this service. */
const toCause = (error: Error): string =>
  'code' in error && typeof error.code === 'string' ? error.code : error.message

/** The routes of one listener. */
export const createRoutes = (deps: AppDependencies, { listener, tokens, exposeLists }: AppOptions): Hono<HttpEnv> => {
  const { observer } = deps
  const app = new Hono<HttpEnv>()
  const isOperator = listener === 'operator'
  if (isOperator) app.use(serveConsole(deps.consoleFolder, deps.streams.operator.files))
  if (tokens) app.use(requireOperator(tokens, deps.sessions))
  const onStreamError: OnStreamError = (error, id) =>
    deps.isUnavailable(error) ? observer.onResponseAborted(error, id) : observer.onRequestFailed(error, id)
  const { logs, lists: limiter, changes, files, inTurn } = deps.streams[listener]
  const lists: ListStreams = { limiter, inTurn, onStreamError }

  const handlers: Handlers = {
    ...healthHandlers(deps.health, deps.metrics),
    ...docsHandlers(files, listener),
    listReservedLabels: c => c.json({ reserved: deps.reservedLabels }, 200),
    ...allocationHandlers(deps.allocations, deps.planning, { acceptsLoopback: deps.acceptsLoopback, isOperator }),
    ...allocationListHandlers(deps.allocations, lists),
    ...tokenHandlers(deps.records, deps.recordsUrl),
    ...tenantRecordHandlers(deps.records),
    ...acmeHandlers(deps.records),
    ...externalDnsHandlers(deps.records),
    ...deploymentHandlers(deps.deployments, { lists, logs }),
    ...bucketHandlers(deps.buckets, lists),
    ...domainHandlers(deps.domains),
    ...credentialHandlers(deps.credentials, deps.providers),
    ...sessionHandlers(deps.sessions, tokens ?? []),
    ...operatorViewHandlers(deps.operatorView, changes, onStreamError),
    ...nameHandlers(deps.names),
    ...leaseHandlers(deps.operatorView.witness),
    ...transferHandlers(deps.transfer, lists),
    ...convergeHandlers(deps.reconciler),
  }
  addRoutes(app, handlers, { operator: isOperator, list: exposeLists })

  const noRoute = isOperator ? NO_ROUTE_DETAIL : `${NO_ROUTE_DETAIL} The operator listener has more.`
  // The method of each route by its path, so that one lookup finds all. Hono's middleware for 405 also looks up every request
  // that has a route.
  const methods = new SmartRouter<string>({ routers: [new RegExpRouter(), new TrieRouter()] })
  const routes = app.routes.filter(({ method }) => method !== METHOD_NAME_ALL)
  for (const { method, path } of routes) methods.add(METHOD_NAME_ALL, path, method)
  // Of a path without parameters, the methods of another one that has parameters in its place are not meant.
  const fixed = Map.groupBy(routes, ({ path }) => path)
  const listAllowed = (path: string): readonly string[] => {
    const [matched] = methods.match(METHOD_NAME_ALL, path)
    if (matched.length === 0) return []
    const found = new Set(fixed.get(path)?.map(({ method }) => method) ?? matched.map(([method]) => method))
    return [...(found.has('GET') ? found.add('HEAD') : found)].toSorted()
  }
  // Not as middleware, so that it costs the existing routes nothing.
  app.notFound(c => {
    if (c.req.path === '/' && c.env.header('accept')?.includes('text/html')) return c.redirect('/docs')
    const isList = !exposeLists && LIST_PATHS.some(path => path.test(c.req.path))
    const allowed = listAllowed(c.req.path)
    if (allowed.length === 0) return sendError(c, { kind: 'not-found', detail: isList ? NO_LISTS : noRoute })
    c.header('Allow', allowed.join(', '))
    const detail = isList && c.req.method === 'GET' ? NO_LISTS : `This route has only ${allowed.join(', ')}.`
    return sendError(c, { kind: 'method-not-allowed', detail })
  })
  app.onError((error, c) => {
    // Thrown by the bearer authentication.
    if (error instanceof HTTPException) return error.getResponse()
    const ofBody = toBodyOutcome(c.env, error)
    if (ofBody) return sendError(c, ofBody)
    if (deps.isUnavailable(error)) c.env.cause = toCause(error)
    if (deps.isReadOnly(error)) {
      return sendError(c, { kind: 'database-read-only', retryAfterSeconds: RETRY_AFTER_S })
    }
    if (deps.isUnavailable(error)) {
      const read = c.req.method === 'GET' ? { detail: READ_UNAVAILABLE } : {}
      const detail = deps.isNotWritten(error) ? { detail: NOT_WRITTEN } : read
      // From 1 s, because a failover takes about as long; at random, so that not all clients return in the same second.
      const retryAfterSeconds = 1 + Math.floor(Math.random() * RETRY_AFTER_S)
      return sendError(c, { kind: 'database-unavailable', ...detail, retryAfterSeconds })
    }
    observer.onRequestFailed(error, c.env.requestId)
    return sendError(c, { kind: 'internal-error' })
  })
  return app
}

/** The API on one listener. */
export const createApp = (deps: AppDependencies, options: AppOptions): App => {
  const { browsers, clientAddress, observer, tracer } = deps
  const { listener } = options
  const limitWrites = listener === 'in-cluster' ? deps.limitWrites : null
  const handling = { listener, browsers, clientAddress, limitWrites, observer, tracer }
  return handleRequests(createRoutes(deps, options), handling)
}

export interface StartingDependencies
  extends Pick<AppDependencies, 'clientAddress' | 'metrics' | 'observer' | 'consoleFolder' | 'streams'> {
  readonly managedDomains: readonly string[]
}

const sendStarting = (c: Context<HttpEnv>) =>
  sendError(c, {
    kind: 'database-unavailable',
    detail:
      'The service is starting and has not reached its database. The request was not executed; send it again later.',
    retryAfterSeconds: RETRY_AFTER_S,
  })

/** Until the database is reached: the probes, the metrics, the files of the console, and 503 for everything else. */
export const createStartingApp = (
  { managedDomains, clientAddress, metrics, observer, consoleFolder, streams }: StartingDependencies,
  { listener, tokens }: Pick<AppOptions, 'listener' | 'tokens'>,
): App => {
  const app = new Hono<HttpEnv>()
  if (tokens)
    app.use(serveConsole(consoleFolder, streams.operator.files)).use(requireTokenAtStart(tokens, sendStarting))
  app.get('/livez', c => c.json({ status: 'ok' } satisfies Probe, 200))
  app.get('/readyz', c => c.json({ status: 'starting' } satisfies Probe, 503))
  app.get('/healthz', c => c.json({ status: 'unhealthy', managedDomains: [...managedDomains] } satisfies Health, 503))
  app.get('/metrics', async c => c.body(await metrics.text(), 200, { 'Content-Type': metrics.contentType }))
  app.notFound(sendStarting)
  return handleRequests(app, { listener, clientAddress, observer, tracer: null, browsers: null, limitWrites: null })
}

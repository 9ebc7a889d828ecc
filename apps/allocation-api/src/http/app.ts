import { type Context, Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { Observer } from '../observability/domain/observer.ts'
import { problem } from './errors.ts'
import { methodsByPath } from './method-not-allowed.ts'
import { operatorOnly } from './middleware/bearer-auth.ts'
import { requestContext } from './middleware/request-context.ts'
import { type ListingVerbs, listingRoutes } from './routes/allocation-lists.ts'
import { type PoolVerbs, poolRoutes } from './routes/allocations.ts'
import { type ConvergeVerbs, convergeRoutes } from './routes/converge.ts'
import { type CredentialVerbs, credentialRoutes, type KnownProviders } from './routes/credentials.ts'
import { type DeploymentVerbs, deploymentListRoutes, deploymentRoutes } from './routes/deployments.ts'
import { descriptionRoutes } from './routes/docs.ts'
import { type HealthDependencies, healthRoutes } from './routes/health.ts'
import { type MetricsText, metricsRoutes } from './routes/metrics.ts'
import { reservedRoutes } from './routes/reserved.ts'
import type { EventStreams } from './sse.ts'
import type { HttpEnv, Listener, OnStreamError } from './types.ts'
import { isBrokenOff, isTooLarge } from './validate.ts'

export interface AppDependencies {
  readonly deployments: DeploymentVerbs
  /** Those of all addresses together. */
  readonly streams: EventStreams
  readonly verbs: PoolVerbs & ListingVerbs & ConvergeVerbs & CredentialVerbs
  readonly providers: KnownProviders
  readonly health: HealthDependencies
  readonly metrics: MetricsText
  readonly reservedLabels: readonly string[]
  readonly openApi: object
  readonly observer: Pick<Observer, 'onRequest' | 'onRequestFailed' | 'onResponseAborted'>
  /** Whether an error that no operation expects means that a dependency is down: 503 instead of 500. */
  readonly isUnavailable: (error: unknown) => boolean
}

export interface AppOptions {
  readonly listener: Listener
  /** Bearer tokens, of which a request needs one; null: no request needs one. */
  readonly tokens: readonly string[] | null
  /** Whether this listener has the lists: `list` and `history` of a pool, and the deployments. */
  readonly exposeLists: boolean
}

const BODY_LIMIT_BYTES = 64 * 1_024

/** The API at one address. */
export const createApp = (deps: AppDependencies, { listener, tokens, exposeLists }: AppOptions): Hono<HttpEnv> => {
  const { observer } = deps
  const app = new Hono<HttpEnv>()
  app.use(requestContext(listener, observer))
  if (tokens) app.use(operatorOnly(tokens))
  const tooLarge = (c: Context<HttpEnv>) => {
    // What is left of the body is not worth reading: the connection ends with the answer.
    c.header('Connection', 'close')
    return problem(c, { kind: 'body-too-large' })
  }
  // A body of a declared length is judged by it, and one of unknown length while it is read: the reading is slow.
  const limitStream = bodyLimit({ maxSize: BODY_LIMIT_BYTES, onError: tooLarge })
  app.use(async (c, next) => {
    if (c.req.header('Transfer-Encoding') !== undefined) return limitStream(c, next)
    return Number(c.req.header('Content-Length') ?? 0) > BODY_LIMIT_BYTES ? tooLarge(c) : next()
  })

  const onStreamError: OnStreamError = (error, requestId) =>
    deps.isUnavailable(error)
      ? observer.onResponseAborted(error, requestId)
      : observer.onRequestFailed(error, requestId)

  app.route('/', healthRoutes(deps.health))
  app.route('/', descriptionRoutes(deps.openApi))
  app.route('/metrics', metricsRoutes(deps.metrics))
  app.route('/api/v1/reserved', reservedRoutes(deps.reservedLabels))
  app.route('/api/v1/pool', poolRoutes(deps.verbs))
  app.route('/api/v1/deployments', deploymentRoutes(deps.deployments, deps.streams, onStreamError))
  app.route('/api/v1/credentials', credentialRoutes(deps.verbs, deps.providers))
  if (exposeLists) {
    app.route('/api/v1/pool', listingRoutes(deps.verbs, onStreamError))
    app.route('/api/v1/deployments', deploymentListRoutes(deps.deployments))
  }
  if (listener === 'operator') app.route('/api/v1/pool', convergeRoutes(deps.verbs))

  const methodsOf = methodsByPath(app)
  app.notFound(c => {
    const methods = methodsOf(c.req.path)
    if (methods.length === 0) return problem(c, { kind: 'not-found', detail: 'There is no such path.' })
    c.header('Allow', methods.join(', '))
    return problem(c, { kind: 'method-not-allowed' })
  })
  app.onError((error, c) => {
    if (isTooLarge(error)) return tooLarge(c)
    if (isBrokenOff(c)) return problem(c, { kind: 'invalid-json', detail: 'The body was broken off.' })
    if (deps.isUnavailable(error)) return problem(c, { kind: 'database-unavailable' })
    observer.onRequestFailed(error, c.get('requestId'))
    return problem(c, { kind: 'internal-error' })
  })
  return app
}

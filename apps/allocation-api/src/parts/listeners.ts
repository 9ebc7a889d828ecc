import {
  type App,
  type HttpServer,
  type ListenOptions,
  listen,
  readMemoryLimit,
  toListenError,
  toServerLimits,
} from '@pool/runtime/service/http-server'
import { type AppDependencies, type AppOptions, createApp, createStartingApp } from '../http/app.ts'
import { getHeader } from '../http/request.ts'
import { createProxyCheck } from '../http/sender.ts'
import { toRateLimitKey } from '../lib/rate-limiter.ts'
import { PROBE_ROUTES } from '../observability/domain/observer.ts'
import type { ServiceConfig } from '../service-config.ts'
import type { Base } from './base.ts'

const REQUEST_GRACE_MS = 8_000
/** Of what a listener has, for one client address. */
const CLIENT_SHARE = 0.25
/** What the operator listener has of the connections and unfinished bodies. No client of the other one can use it up. */
const OPERATOR_PART = 0.25
/** The heap, which has the heads of all unfinished requests, is as small on a large machine. */
const MAX_MEMORY_BYTES = 1_024 ** 3

interface Listener {
  readonly options: AppOptions
  readonly server: HttpServer
}

/** Opens the listeners. Until `serve`, they respond to probes, and with 503 to everything else. */
export const openListeners = async (config: ServiceConfig, { log, metrics, observer, routes }: Base) => {
  const { managedDomains, operator, operatorOnlyList } = config
  const { clientAddress, consoleFolder, streams } = routes
  const isProxy = createProxyCheck(config.trustedProxies)
  const listenOn = async (port: number, variable: string, app: App, part: number): Promise<HttpServer> => {
    const listening: ListenOptions = {
      malformedRequestCode: 'invalid-format',
      address: config.listenAddress,
      keepAliveMs: config.keepAliveMs,
      limits: toServerLimits(Math.min(readMemoryLimit(), MAX_MEMORY_BYTES), CLIENT_SHARE, part),
      probePaths: [...PROBE_ROUTES],
      toConnectionClient: peer => (isProxy(peer) ? null : toRateLimitKey(clientAddress(peer, () => undefined))),
      toClient: request =>
        toRateLimitKey(clientAddress(request.socket.remoteAddress ?? null, name => getHeader(request, name))),
    }
    return listen(app, port, listening).catch((error: NodeJS.ErrnoException) => {
      throw toListenError(error, { variable, port, addressVariable: 'PDM_LISTEN_ADDRESS' })
    })
  }
  const open = async (port: number, variable: string, options: AppOptions): Promise<Listener> => {
    const app = createStartingApp({ managedDomains, clientAddress, metrics, observer, consoleFolder, streams }, options)
    const part = options.listener === 'operator' ? OPERATOR_PART : 1 - OPERATOR_PART
    return { options, server: await listenOn(port, variable, app, part) }
  }
  const inCluster = await open(config.port, 'PORT', {
    listener: 'in-cluster',
    tokens: null,
    exposeLists: !operatorOnlyList,
  })
  const forOperators =
    operator &&
    (await open(operator.port, 'PDM_OPERATOR_PORT', {
      listener: 'operator',
      tokens: operator.tokens,
      exposeLists: true,
    }))
  const listeners = [inCluster, ...(forOperators ? [forOperators] : [])]
  const ports = { port: inCluster.server.port, operatorPort: forOperators?.server.port ?? null }
  log.info(ports, 'listening')

  return {
    ports,
    serve(dependencies: AppDependencies): void {
      for (const { server, options } of listeners) server.serve(createApp(dependencies, options))
    },
    /** Resolves when every connection is closed. */
    stop: async () => void (await Promise.all(listeners.map(({ server }) => server.close(REQUEST_GRACE_MS)))),
  }
}

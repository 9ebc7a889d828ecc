import { type App, type HttpServer, listen, toListenError } from '@pool/runtime/service/http-server'
import { type AppDependencies, type AppOptions, createApp, createStartingApp } from '../http/app.ts'
import type { ServiceConfig } from '../service-config.ts'
import type { Base } from './base.ts'

const REQUEST_GRACE_MS = 8_000

interface Listener {
  readonly options: AppOptions
  readonly server: HttpServer
}

/** Opens the listeners. Until `serve`, they respond to probes, and with 503 to everything else. */
export const openListeners = async (config: ServiceConfig, { log, metrics, observer, routes }: Base) => {
  const { managedDomains, operator, operatorOnlyList } = config
  const { clientAddress, consoleFolder } = routes
  const listenOn = async (port: number, variable: string, app: App): Promise<HttpServer> => {
    const listening = {
      malformedRequestCode: 'invalid-format',
      address: config.listenAddress,
      keepAliveMs: config.keepAliveMs,
    }
    return listen(app, port, listening).catch((error: NodeJS.ErrnoException) => {
      throw toListenError(error, { variable, port, addressVariable: 'PDM_LISTEN_ADDRESS' })
    })
  }
  const open = async (port: number, variable: string, options: AppOptions): Promise<Listener> => {
    const app = createStartingApp({ managedDomains, clientAddress, metrics, observer, consoleFolder }, options)
    return { options, server: await listenOn(port, variable, app) }
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

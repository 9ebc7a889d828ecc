import type { DeploymentOperations } from '../../src/deployments/service.ts'
import { type AppDependencies, createApp, type StreamLimiters } from '../../src/http/app.ts'
import type { App } from '../../src/http/handle-requests.ts'
import { createStreamLimiter } from '../../src/http/streams.ts'

/** Sends a request to an app without a server. */
export const sendRequest = (app: App, path: string, init?: RequestInit): Promise<Response> =>
  app.fetch(new Request(`http://localhost${path}`, init), {})

/** Stands for a part of the service: every call of it, or of a part of it, throws. */
const unused = (): never => {
  const throwError = () => {
    throw new Error('this dependency must not be called')
  }
  return new Proxy(throwError, { get: () => unused() }) as never
}

export const onBothListeners = (limiters: Partial<StreamLimiters>): AppDependencies['streams'] => {
  const limiter = createStreamLimiter()
  const all: StreamLimiters = {
    logs: limiter,
    lists: limiter,
    changes: limiter,
    files: limiter,
    inTurn: fetch => fetch(),
    ...limiters,
  }
  return { 'in-cluster': all, operator: all }
}

/** Dependencies that throw on every call, for tests that need routes only or replace some of them. */
export const unusedDependencies: AppDependencies = {
  allocations: unused(),
  acceptsLoopback: false,
  reconciler: unused(),
  credentials: unused(),
  deployments: unused(),
  domains: unused(),
  transfer: unused(),
  buckets: unused(),
  sessions: unused(),
  names: unused(),
  planning: unused(),
  records: unused(),
  recordsUrl: null,
  operatorView: unused(),
  consoleFolder: '/nowhere',
  streams: onBothListeners({}),
  providers: { objectStorage: 'hetzner', token: ['hetzner'] },
  health: unused(),
  metrics: unused(),
  clientAddress: peer => peer,
  limitWrites: null,
  browsers: { allowedOrigins: [], allowedHosts: [], loopbackHostsOnly: false },
  reservedLabels: [],
  observer: unused(),
  tracer: null,
  isUnavailable: unused(),
  isReadOnly: () => false,
  isNotWritten: () => false,
}

type ReportedErrors = (readonly [message: string, requestId: string])[]

/** Creates the app on fake deployments. `errors` and `aborted` hold what the app reported, with the request id. */
export const createAppWithFakeDeployments = (
  deployments: Partial<DeploymentOperations>,
  options: { readonly maxStreams?: number; readonly stallTimeoutMs?: number } = {},
) => {
  const stopping = new AbortController()
  const errors: ReportedErrors = []
  const aborted: ReportedErrors = []
  const outcomes: string[] = []
  const app = createApp(
    {
      ...unusedDependencies,
      deployments: { ...unusedDependencies.deployments, ...deployments },
      streams: onBothListeners({
        logs: createStreamLimiter({ stopping: stopping.signal, ...options }),
        lists: createStreamLimiter(options),
      }),
      observer: {
        onRequest: ({ outcome }) => outcomes.push(outcome),
        onShortKey: () => {},
        onRequestFailed: (error, requestId) => errors.push([String(error), requestId]),
        onResponseAborted: (error, requestId) => aborted.push([String(error), requestId]),
      },
      isUnavailable: error => error instanceof Error && error.message === 'away',
    },
    { listener: 'in-cluster', tokens: null, exposeLists: true },
  )
  return { app, stopping, errors, aborted, outcomes }
}

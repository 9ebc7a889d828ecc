import type { DeploymentOperations } from '../../src/deployments/service.ts'
import { type AppDependencies, createApp } from '../../src/http/app.ts'
import type { App } from '../../src/http/handle-requests.ts'
import { createStreamLimiter } from '../../src/http/streams.ts'

/** Sends a request to an app without a server. */
export const sendRequest = (app: App, path: string, init?: RequestInit): Promise<Response> =>
  app.fetch(new Request(`http://localhost${path}`, init), {})

const failOnCall = (): never => {
  throw new Error('this dependency must not be called')
}

/** Dependencies that throw on every call, for tests that need routes only or replace some of them. */
export const unusedDependencies: AppDependencies = {
  allocations: {
    check: failOnCall,
    get: failOnCall,
    reserve: failOnCall,
    commit: failOnCall,
    update: failOnCall,
    renew: failOnCall,
    release: failOnCall,
    liftCoolOff: failOnCall,
    list: failOnCall,
    history: failOnCall,
  },
  acceptsLoopback: false,
  reconciler: {
    preview: failOnCall,
    repair: failOnCall,
    republish: failOnCall,
    changeOrphans: failOnCall,
    resume: failOnCall,
    listFormerRecords: failOnCall,
  },
  credentials: { validateKeys: failOnCall, validateToken: failOnCall },
  deployments: {
    create: failOnCall,
    get: failOnCall,
    list: failOnCall,
    apply: failOnCall,
    destroy: failOnCall,
    plan: failOnCall,
    remove: failOnCall,
    cancel: failOnCall,
    unlock: failOnCall,
    tailLog: failOnCall,
    history: failOnCall,
  },
  domains: { createChallenge: failOnCall, limitChallenges: failOnCall, check: failOnCall },
  transfer: { export: failOnCall, import: failOnCall, importNames: failOnCall },
  buckets: { list: failOnCall, lift: failOnCall },
  sessions: { start: failOnCall, find: failOnCall, end: failOnCall, limitAttempts: failOnCall },
  names: {
    search: failOnCall,
    read: failOnCall,
    reconciler: { compareName: failOnCall, planAction: failOnCall },
    pools: failOnCall,
    coolOffMs: 0,
    acceptsLoopback: false,
  },
  operatorView: {
    settings: failOnCall,
    pools: failOnCall,
    reconciler: { listZoneStates: failOnCall, isCircuitOpen: failOnCall },
    readOverview: failOnCall,
    readChanges: failOnCall,
    witness: { list: failOnCall, history: failOnCall, release: failOnCall },
    sleep: failOnCall,
  },
  consoleFolder: '/nowhere',
  streams: { logs: { acquire: failOnCall }, lists: createStreamLimiter(), changes: createStreamLimiter() },
  providers: { objectStorage: 'hetzner', token: ['hetzner'] },
  health: { isDatabaseUp: failOnCall, acceptsWrites: failOnCall, phase: failOnCall, pools: failOnCall },
  metrics: { contentType: 'text/plain', text: failOnCall },
  clientAddress: peer => peer,
  browsers: { allowedOrigins: [], loopbackHostsOnly: false },
  reservedLabels: [],
  observer: { onRequest: failOnCall, onRequestFailed: failOnCall, onResponseAborted: failOnCall },
  tracer: null,
  isUnavailable: failOnCall,
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
      streams: {
        logs: createStreamLimiter({ stopping: stopping.signal, ...options }),
        lists: createStreamLimiter(options),
        changes: createStreamLimiter(options),
      },
      observer: {
        onRequest: ({ outcome }) => outcomes.push(outcome),
        onRequestFailed: (error, requestId) => errors.push([String(error), requestId]),
        onResponseAborted: (error, requestId) => aborted.push([String(error), requestId]),
      },
      isUnavailable: error => error instanceof Error && error.message === 'away',
    },
    { listener: 'in-cluster', tokens: null, exposeLists: true },
  )
  return { app, stopping, errors, aborted, outcomes }
}

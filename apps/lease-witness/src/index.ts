import { createApp } from './app.ts'
import type { StoredSecret, WorkerEnv } from './env.ts'
import type { Services, SharedRequestLimit } from './http/types.ts'
import { createLeaseDirectory } from './kv-copy/copy.ts'
import { log } from './log.ts'
import { createLeaseService } from './object/client.ts'
import { createLeaseDrain } from './object/drain.ts'
import { findIgnoredVariables } from './settings.ts'
import { StoredPolicies } from './stored-policies.ts'

export { LeaseObject } from './object/lease-object.ts'

/** A failure of the limit must not be one of the witness. */
const createSharedLimit = ({ REQUEST_LIMIT }: WorkerEnv): SharedRequestLimit | undefined =>
  REQUEST_LIMIT &&
  (key =>
    REQUEST_LIMIT.limit({ key }).then(
      ({ success }) => success,
      () => true,
    ))

/** The columns of docs/operate/monitor.md. The platform writes a data point after the response, without a wait. */
const createRequestCounter = ({ METRICS }: WorkerEnv): Services['onRequest'] =>
  METRICS &&
  (({ method, route, outcome, status, seconds }) =>
    METRICS.writeDataPoint({
      indexes: [outcome],
      blobs: [method, route, outcome, String(status)],
      doubles: [seconds],
    }))

type App = ReturnType<typeof createApp>

/** Per isolate: the platform passes the same bindings with every request. */
let cache: { readonly env: WorkerEnv; readonly policies: string | undefined; readonly app: App } | undefined
let stored: { readonly secret: StoredSecret; readonly policies: StoredPolicies } | undefined

/** Wrangler passes `MAX_WAIT_SECONDS = 60` as a number. */
const toTexts = <Settings extends object>(settings: Settings): Settings =>
  Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [name, typeof value === 'number' ? String(value) : value]),
  ) as Settings

const toApp = (env: WorkerEnv, policies: string | undefined, lacksPolicies = false): App => {
  if (cache?.env !== env || cache.policies !== policies) {
    const services: Services = {
      leases: createLeaseService(env),
      directory: createLeaseDirectory(env),
      drain: createLeaseDrain(env),
      sharedRequestLimit: createSharedLimit(env),
      onRequest: createRequestCounter(env),
      lacksPolicies,
    }
    const texts = toTexts(env)
    for (const ignored of findIgnoredVariables(texts)) log(texts, 'error', { msg: 'questionable-variable', ...ignored })
    const { TOKEN_POLICIES: _, ...settings } = texts
    const app = createApp(policies === undefined ? settings : { ...settings, TOKEN_POLICIES: policies }, services)
    cache = { env, policies, app }
  }
  return cache.app
}

const fetchWithStoredPolicies = async (request: Request, env: WorkerEnv, secret: StoredSecret): Promise<Response> => {
  const onError = (error: unknown) => log(env, 'error', { msg: 'policies-unavailable', reason: String(error) })
  if (stored?.secret !== secret) stored = { secret, policies: new StoredPolicies() }
  const policies = await stored.policies.read(secret, Date.now(), onError)
  return toApp(env, policies, policies === undefined).fetch(request)
}

export default {
  fetch: (request: Request, env: WorkerEnv): Response | Promise<Response> => {
    const { TOKEN_POLICIES } = env
    return typeof TOKEN_POLICIES === 'object'
      ? fetchWithStoredPolicies(request, env, TOKEN_POLICIES)
      : toApp(env, TOKEN_POLICIES).fetch(request)
  },
}

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

/** Wrangler passes numbers, truth values and lists of wrangler.toml as such. Other bindings stay as they are. */
const toText = (value: unknown): unknown => {
  if (!Array.isArray(value)) return typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
  return value.every(item => typeof item === 'string') ? value.join() : JSON.stringify(value)
}

const toTexts = (env: WorkerEnv): WorkerEnv =>
  Object.fromEntries(Object.entries(env).map(([name, value]) => [name, toText(value)])) as unknown as WorkerEnv

const isStoredSecret = (policies: WorkerEnv['TOKEN_POLICIES']): policies is StoredSecret =>
  typeof policies === 'object' && !Array.isArray(policies)

/** `policies`: those of a stored secret. */
const toApp = (env: WorkerEnv, policies?: string, lacksPolicies = false): App => {
  if (cache?.env !== env || cache.policies !== policies) {
    const texts = toTexts(env)
    const services: Services = {
      leases: createLeaseService(texts),
      directory: createLeaseDirectory(texts),
      drain: createLeaseDrain(texts),
      sharedRequestLimit: createSharedLimit(texts),
      onRequest: createRequestCounter(texts),
      lacksPolicies,
    }
    for (const ignored of findIgnoredVariables(texts)) log(texts, 'error', { msg: 'questionable-variable', ...ignored })
    const { TOKEN_POLICIES, ...settings } = texts
    const text = isStoredSecret(TOKEN_POLICIES) ? policies : TOKEN_POLICIES
    const app = createApp(text === undefined ? settings : { ...settings, TOKEN_POLICIES: text }, services)
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
    return isStoredSecret(TOKEN_POLICIES)
      ? fetchWithStoredPolicies(request, env, TOKEN_POLICIES)
      : toApp(env).fetch(request)
  },
}

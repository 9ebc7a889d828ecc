import { createApp } from './app.ts'
import type { WorkerEnv } from './env.ts'
import type { Services, SharedRequestLimit } from './http/types.ts'
import { createLeaseDirectory } from './kv-copy/copy.ts'
import { createLeaseService } from './object/client.ts'

export { LeaseObject } from './object/lease-object.ts'

/** A failure of the limit must not be one of the witness. */
const createSharedLimit = ({ REQUEST_LIMIT }: WorkerEnv): SharedRequestLimit | undefined =>
  REQUEST_LIMIT &&
  (key =>
    REQUEST_LIMIT.limit({ key }).then(
      ({ success }) => success,
      () => true,
    ))

type App = ReturnType<typeof createApp>

/** Per isolate: the platform passes the same bindings with every request. */
let cache: { readonly env: WorkerEnv; readonly app: App } | undefined

const toApp = (env: WorkerEnv): App => {
  if (cache?.env !== env) {
    const services: Services = {
      leases: createLeaseService(env),
      directory: createLeaseDirectory(env),
      sharedRequestLimit: createSharedLimit(env),
    }
    cache = { env, app: createApp(env, services) }
  }
  return cache.app
}

export default {
  fetch: (request: Request, env: WorkerEnv): Response | Promise<Response> => toApp(env).fetch(request),
}

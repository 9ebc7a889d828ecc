import { createApp } from './app.ts'
import type { WorkerEnv } from './env.ts'
import { createLeaseDirectory } from './kv-copy/copy.ts'
import { createLeaseService } from './object/client.ts'

export { LeaseObject } from './object/lease-object.ts'

type App = ReturnType<typeof createApp>

/** Per isolate: the platform passes the same bindings with every request. */
let cache: { readonly env: WorkerEnv; readonly app: App } | undefined

const toApp = (env: WorkerEnv): App => {
  if (cache?.env !== env) {
    const services = { leases: createLeaseService(env), directory: createLeaseDirectory(env) }
    cache = { env, app: createApp(env, services) }
  }
  return cache.app
}

export default {
  fetch: (request: Request, env: WorkerEnv): Response | Promise<Response> => toApp(env).fetch(request),
}

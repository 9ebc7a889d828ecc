import type { Health, Probe } from '@pool/contract'
import { type Context, Hono } from 'hono'
import type { AppDependencies, AppOptions } from './app.ts'
import { serveConsole } from './console-files.ts'
import { type App, handleRequests } from './handle-requests.ts'
import { requireTokenAtStart } from './operator-auth.ts'
import { type HttpEnv, RETRY_AFTER_S, sendError } from './request.ts'

export interface StartingDependencies
  extends Pick<AppDependencies, 'clientAddress' | 'metrics' | 'observer' | 'consoleFolder'> {
  readonly managedDomains: readonly string[]
}

const sendStarting = (c: Context<HttpEnv>) =>
  sendError(c, {
    kind: 'database-unavailable',
    detail:
      'The service is starting and has not reached its database. The request was not executed; send it again later.',
    retryAfterSeconds: RETRY_AFTER_S,
  })

/** What a listener serves until the database is reached: the probes, the metrics, the files of the console, and 503 for
 * everything else. */
export const createStartingApp = (
  { managedDomains, clientAddress, metrics, observer, consoleFolder }: StartingDependencies,
  { listener, tokens }: Pick<AppOptions, 'listener' | 'tokens'>,
): App => {
  const app = new Hono<HttpEnv>()
  if (tokens) app.use(serveConsole(consoleFolder)).use(requireTokenAtStart(tokens, sendStarting))
  app.get('/livez', c => c.json({ status: 'ok' } satisfies Probe, 200))
  app.get('/readyz', c => c.json({ status: 'starting' } satisfies Probe, 503))
  app.get('/healthz', c => c.json({ status: 'unhealthy', managedDomains: [...managedDomains] } satisfies Health, 503))
  app.get('/metrics', async c => c.body(await metrics.text(), 200, { 'Content-Type': metrics.contentType }))
  app.notFound(sendStarting)
  return handleRequests(app, { listener, clientAddress, observer, tracer: null, browsers: null })
}

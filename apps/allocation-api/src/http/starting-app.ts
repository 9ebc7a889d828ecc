import type { Health, Probe } from '@pool/contract'
import { Hono } from 'hono'
import type { AppDependencies } from './app.ts'
import { type AppOptions, requestContext } from './app.ts'
import { requireOperatorToken } from './bearer-auth.ts'
import { RETRY_AFTER_S, sendError } from './errors.ts'
import type { HttpEnv } from './types.ts'

export interface StartingDependencies extends Pick<AppDependencies, 'clientAddress' | 'metrics' | 'observer'> {
  readonly managedDomains: readonly string[]
}

/** What a listener serves until the database is reached: the probes, the metrics, and 503 for everything else. */
export const createStartingApp = (
  { managedDomains, clientAddress, metrics, observer }: StartingDependencies,
  { listener, tokens }: Pick<AppOptions, 'listener' | 'tokens'>,
): Hono<HttpEnv> => {
  const app = new Hono<HttpEnv>()
  app.use(requestContext(listener, { clientAddress, observer, tracer: null }))
  if (tokens) app.use(requireOperatorToken(tokens))
  app.get('/livez', c => c.json({ status: 'ok' } satisfies Probe, 200))
  app.get('/readyz', c => c.json({ status: 'starting' } satisfies Probe, 503))
  app.get('/healthz', c => c.json({ status: 'unhealthy', managedDomains: [...managedDomains] } satisfies Health, 503))
  app.get('/metrics', async c => c.body(await metrics.text(), 200, { 'Content-Type': metrics.contentType }))
  app.notFound(c =>
    sendError(c, {
      kind: 'database-unavailable',
      detail:
        'The service is starting and has not reached its database. The request was not executed; send it again later.',
      retryAfterSeconds: RETRY_AFTER_S,
    }),
  )
  return app
}

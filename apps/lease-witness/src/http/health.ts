import type { Probe } from '@pool/contract/health'
import { Hono } from 'hono'
import type { Services, WitnessHttpEnv } from './types.ts'

export const healthRoutes = ({ leases }: Services): Hono<WitnessHttpEnv> => {
  const app = new Hono<WitnessHttpEnv>()
  app.get('/', async c => {
    const isHealthy = await leases.checkHealth()
    const body: Probe = { status: isHealthy ? 'ok' : 'unhealthy' }
    c.set('outcome', body.status)
    c.set('isRoutine', true)
    return c.json(body, isHealthy ? 200 : 503)
  })
  return app
}

import type { Health, Probe } from '@pool/contract'
import { Hono } from 'hono'
import type { HttpEnv } from '../types.ts'

export interface HealthDependencies {
  /** Whether the database answers; says so within 2 s even when it hangs. */
  readonly databaseAnswers: () => Promise<boolean>
  readonly phase: () => 'starting' | 'ready' | 'draining'
  readonly managedDomains: readonly string[]
}

export const healthRoutes = ({ databaseAnswers, phase, managedDomains }: HealthDependencies) => {
  const readiness = async (): Promise<Probe['status']> => {
    const now = phase()
    if (now !== 'ready') return now
    return (await databaseAnswers()) ? 'ok' : 'unhealthy'
  }
  return new Hono<HttpEnv>()
    .get('/healthz', async c => {
      const status = (await databaseAnswers()) ? 'ok' : 'unhealthy'
      c.set('outcome', status)
      const body: Health = { status, managedDomains: [...managedDomains] }
      return c.json(body, status === 'ok' ? 200 : 503)
    })
    .get('/livez', c => c.json({ status: 'ok' } satisfies Probe, 200))
    .get('/readyz', async c => {
      const status = await readiness()
      c.set('outcome', status)
      return c.json({ status } satisfies Probe, status === 'ok' ? 200 : 503)
    })
}

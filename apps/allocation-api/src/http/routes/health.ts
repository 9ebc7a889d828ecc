import type { Health, Probe } from '@pool/contract'
import type { Pools } from '../../naming/naming.ts'
import type { Handlers } from '../request.ts'

export interface HealthDependencies {
  /** Whether the database responds. Resolves within 2 s even if the database hangs. */
  readonly isDatabaseUp: () => Promise<boolean>
  /** Whether the database accepts a write. Resolves within 2 s even if the database hangs. */
  readonly acceptsWrites: () => Promise<boolean>
  readonly phase: () => 'starting' | 'ready' | 'draining'
  readonly pools: () => Pick<Pools, 'managed' | 'draining'>
}

export interface MetricsSource {
  readonly contentType: string
  readonly text: () => Promise<string>
}

/** Health, liveness and readiness probes, and metrics. */
export const healthHandlers = (
  { isDatabaseUp, acceptsWrites, phase, pools }: HealthDependencies,
  metrics: MetricsSource,
): Pick<Handlers, 'getHealth' | 'getLiveness' | 'getReadiness' | 'getMetrics'> => {
  const getReadiness = async (): Promise<Probe['status']> => {
    const current = phase()
    if (current !== 'ready') return current
    return (await acceptsWrites()) ? 'ok' : 'unhealthy'
  }
  return {
    getHealth: async c => {
      const status = (await isDatabaseUp()) ? 'ok' : 'unhealthy'
      c.env.outcome = status
      const { managed, draining } = pools()
      const body: Health = {
        status,
        managedDomains: [...managed],
        ...(draining.length > 0 ? { drainingDomains: [...draining] } : {}),
      }
      return c.json(body, status === 'ok' ? 200 : 503)
    },
    getLiveness: c => c.json({ status: 'ok' } satisfies Probe, 200),
    getReadiness: async c => {
      const status = await getReadiness()
      c.env.outcome = status
      return c.json({ status } satisfies Probe, status === 'ok' ? 200 : 503)
    },
    getMetrics: async c => c.body(await metrics.text(), 200, { 'Content-Type': metrics.contentType }),
  }
}

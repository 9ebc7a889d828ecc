import * as z from 'zod'

export const health = z
  .object({
    status: z.enum(['ok', 'unhealthy']),
    managedDomains: z.array(z.string()),
    drainingDomains: z.array(z.string()).optional().meta({
      description: 'The pools that have names or records but are no longer configured; absent if there are none.',
    }),
  })
  .meta({ id: 'Health' })
export type Health = z.infer<typeof health>

/** The response of the liveness and readiness probes. */
export const probe = z.object({ status: z.enum(['ok', 'starting', 'draining', 'unhealthy']) }).meta({ id: 'Probe' })
export type Probe = z.infer<typeof probe>

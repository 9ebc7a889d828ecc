import * as z from 'zod'

export const health = z
  .object({ status: z.enum(['ok', 'unhealthy']), managedDomains: z.array(z.string()) })
  .meta({ id: 'Health' })
export type Health = z.infer<typeof health>

/** The response of the liveness and readiness probes. */
export const probe = z.object({ status: z.enum(['ok', 'starting', 'draining', 'unhealthy']) }).meta({ id: 'Probe' })
export type Probe = z.infer<typeof probe>

import { Hono } from 'hono'
import { parseDrain } from '../lease/request.ts'
import type { LeaseDrain } from '../lease-service.ts'
import { errorResponse, forbiddenResponse, logUnavailable } from './errors.ts'
import { takeBody } from './middleware.ts'
import type { WitnessHttpEnv } from './types.ts'

export const drainLeasesRoutes = (service: LeaseDrain): Hono<WitnessHttpEnv> => {
  const app = new Hono<WitnessHttpEnv>()
  app.post('/', async c => {
    if (c.get('caller').grant !== 'full') return forbiddenResponse(c)
    const request = parseDrain(await takeBody(c))
    if (!request.ok) return errorResponse(c, request.error)
    const outcome = await service.drain(request.value)
    switch (outcome.kind) {
      case 'drained':
        c.set('outcome', outcome.result.pending.length === 0 ? 'drained' : 'drained-in-part')
        return c.json(outcome.result)
      case 'copy-unavailable':
        logUnavailable(c, outcome.kind, outcome.reason)
        return errorResponse(c, { code: outcome.kind })
      case 'not-draining':
        return errorResponse(c, { code: outcome.kind })
    }
  })
  return app
}

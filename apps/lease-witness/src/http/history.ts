import type { LeaseHistory } from '@pool/contract/lease'
import { Hono } from 'hono'
import type { Deps } from './context.ts'
import { problem, unavailable } from './errors.ts'
import type { HttpEnv } from './types.ts'
import { slotOf } from './validate.ts'

export const historyRoutes = (deps: Deps): Hono<HttpEnv> => {
  const app = new Hono<HttpEnv>()
  app.get('/:slot{.+}', async c => {
    const at = slotOf(c)
    if (!at.ok) return problem(c, at.refused)
    const outcome = await deps.witness(c).history(at.value)
    switch (outcome.kind) {
      case 'history': {
        c.set('outcome', 'read')
        const body: LeaseHistory = { slot: at.value.slot, transitions: [...outcome.transitions] }
        return c.json(body)
      }
      case 'absent':
        return problem(c, { kind: 'not-found', detail: 'No lease was ever written to this slot.' })
      default:
        return unavailable(c, outcome)
    }
  })
  return app
}

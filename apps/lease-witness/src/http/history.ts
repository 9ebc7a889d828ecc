import type { LeaseHistory } from '@pool/contract/lease'
import { Hono } from 'hono'
import { canRead } from './domain/token-policies.ts'
import { errorResponse, forbiddenResponse, neverWrittenResponse, unavailableResponse } from './errors.ts'
import { slotAddress } from './lease.ts'
import type { Services, WitnessHttpEnv } from './types.ts'

export const historyRoutes = ({ leases }: Services): Hono<WitnessHttpEnv> => {
  const app = new Hono<WitnessHttpEnv>()
  app.get('/:slot{.+}', async c => {
    const address = slotAddress(c)
    if (!address) return errorResponse(c, { code: 'invalid-slot' })
    if (!canRead(c.get('caller').grant, address.slot)) return forbiddenResponse(c)
    const outcome = await leases.history(address)
    switch (outcome.kind) {
      case 'history': {
        c.set('outcome', 'read')
        const body: LeaseHistory = { slot: address.slot, transitions: [...outcome.transitions] }
        return c.json(body)
      }
      case 'absent':
        return neverWrittenResponse(c)
      default:
        return unavailableResponse(c, outcome)
    }
  })
  return app
}

import type { RenewalResult, RenewLeasesResponse } from '@pool/contract/lease'
import { type Context, Hono } from 'hono'
import { parseRenewals, type Renewal } from '../lease/request.ts'
import type { WriteOutcome } from '../lease-service.ts'
import { canActAs, canWrite, type Grant } from './domain/token-policies.ts'
import { errorResponse, forbiddenResponse, logSlotUnavailable, logUnexpected } from './errors.ts'
import { takeBody } from './middleware.ts'
import type { Services, WitnessHttpEnv } from './types.ts'

/** A slot has up to 506 bytes, and platforms cut off long lines. */
const MAX_LOGGED_SLOTS = 10

const toRenewalResult = (slot: string, outcome: WriteOutcome): RenewalResult => {
  switch (outcome.kind) {
    case 'granted':
    case 'renewed':
      return { slot, status: 200, lease: outcome.lease, remainingMs: outcome.remainingMs ?? 0 }
    case 'rejected': {
      const { reason, lease, remainingMs } = outcome
      return { slot, status: 412, conflict: reason, lease, ...(remainingMs === undefined ? {} : { remainingMs }) }
    }
    case 'released':
    case 'absent':
      throw new Error(`a renewal cannot be ${outcome.kind}`)
    default:
      return { slot, status: 503, error: outcome.kind }
  }
}

export const renewLeasesRoutes = ({ leases }: Services): Hono<WitnessHttpEnv> => {
  const isPermitted = (grant: Grant, { address, write }: Renewal): boolean =>
    canWrite(grant, address.slot) && canActAs(grant, write.holder)

  const renew = async (c: Context<WitnessHttpEnv>, renewal: Renewal): Promise<RenewalResult> => {
    const { address, write } = renewal
    const { slot } = address
    const { name, grant } = c.get('caller')
    if (!isPermitted(grant, renewal)) return { slot, status: 403, error: 'forbidden' }
    try {
      const outcome = await leases.write(address, write, name)
      logSlotUnavailable(c, outcome, slot)
      return toRenewalResult(slot, outcome)
    } catch (error) {
      // The other renewals have taken effect, so their results must reach the client.
      logUnexpected(c, error, slot)
      return { slot, status: 500, error: 'internal-error' }
    }
  }

  const app = new Hono<WitnessHttpEnv>()
  app.post('/', async c => {
    const renewals = parseRenewals(await takeBody(c))
    if (!renewals.ok) return errorResponse(c, renewals.error)
    if (!renewals.value.some(renewal => isPermitted(c.get('caller').grant, renewal))) return forbiddenResponse(c)
    const results = await Promise.all(renewals.value.map(renewal => renew(c, renewal)))
    const missed = results.filter(({ status }) => status !== 200).map(({ slot }) => slot)
    const isComplete = missed.length === 0
    c.set('outcome', isComplete ? 'renewed' : 'renewed-in-part')
    c.set('isRoutine', isComplete)
    if (!isComplete) c.set('notRenewed', { count: missed.length, slots: missed.slice(0, MAX_LOGGED_SLOTS) })
    const body: RenewLeasesResponse = { results }
    return c.json(body)
  })
  return app
}

import type { LeaseList, LeaseListQuery, LeaseStatus, LeaseStatusList } from '@pool/contract/lease'
import { type Context, Hono } from 'hono'
import { toWireLease } from '../lease/lease.ts'
import { parseLeasesQuery, type SlotAddress } from '../lease/request.ts'
import type { LeaseStatusOutcome } from '../lease-service.ts'
import { canList, canRead } from './domain/token-policies.ts'
import { errorResponse, forbiddenResponse, logSlotUnavailable, logUnavailable, logUnexpected } from './errors.ts'
import type { Services, WitnessHttpEnv } from './types.ts'

/** Part of every response, because operators may read the list during an incident without the documentation. */
const DETAIL =
  'Eventually consistent: a change of holder appears after seconds to minutes, a renewed expiresAt up to ten minutes ' +
  'later. Do not use it for decisions; GET /lease/<slot> is authoritative.'

const toLeaseStatus = (slot: string, outcome: LeaseStatusOutcome): LeaseStatus => {
  switch (outcome.kind) {
    case 'lease': {
      const { lease, remainingMs, waiters } = outcome
      return { slot, ...lease, ...(remainingMs === undefined ? {} : { remainingMs }), waiters }
    }
    case 'absent':
      return { slot, ...toWireLease(undefined), waiters: outcome.waiters }
    default:
      return { slot, error: outcome.kind }
  }
}

export const listLeasesRoutes = ({ directory, leases }: Services): Hono<WitnessHttpEnv> => {
  const listCopies = async (c: Context<WitnessHttpEnv>, query: LeaseListQuery) => {
    const { grant } = c.get('caller')
    if (!canList(grant, query.prefix)) return forbiddenResponse(c)
    const outcome = await directory.list(query)
    if (outcome.kind === 'copy-unavailable') {
      logUnavailable(c, outcome.kind, outcome.reason)
      return errorResponse(c, { code: outcome.kind, detail: outcome.detail })
    }
    c.set('outcome', 'listed')
    const { nextCursor } = outcome
    // A record whose key is percent-encoded can belong to a slot that does not have the prefix.
    const copies = outcome.leases.filter(({ slot }) => canRead(grant, slot))
    const body: LeaseList = { consistency: 'eventual', detail: DETAIL, leases: copies }
    if (nextCursor !== undefined) body.nextCursor = nextCursor
    return c.json(body)
  }

  const readExactly = async (c: Context<WitnessHttpEnv>, addresses: readonly SlotAddress[]) => {
    const { grant } = c.get('caller')
    const readable = addresses.filter(({ slot }) => canRead(grant, slot))
    if (readable.length === 0) return forbiddenResponse(c)
    const outcomes = await leases.readMany(readable)
    const statuses = new Map<string, LeaseStatus>()
    outcomes.forEach((outcome, index) => {
      const slot = readable[index]?.slot ?? ''
      if (outcome.kind === 'internal-error') logUnexpected(c, outcome.error, slot)
      else logSlotUnavailable(c, outcome, slot)
      statuses.set(slot, toLeaseStatus(slot, outcome))
    })
    c.set('outcome', 'read')
    const body: LeaseStatusList = {
      consistency: 'exact',
      leases: addresses.map(({ slot }) => statuses.get(slot) ?? { slot, error: 'forbidden' }),
    }
    return c.json(body)
  }

  const app = new Hono<WitnessHttpEnv>()
  app.get('/', async c => {
    const parsed = parseLeasesQuery(c.req.queries())
    if (!parsed.ok) return errorResponse(c, parsed.error)
    const { value } = parsed
    return value.kind === 'exact' ? readExactly(c, value.addresses) : listCopies(c, value.query)
  })
  return app
}

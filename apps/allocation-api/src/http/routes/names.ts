import { encodeCursor, type NamePlan, type NameRecords, type NamesResponse, operations } from '@pool/contract'
import { findActionObstacle, toStateAfter } from '../../allocation/domain/name-action.ts'
import type { PoolName } from '../../allocation/domain/types.ts'
import type { NameReader } from '../../allocation/name-details.ts'
import type { NameSearch } from '../../allocation/name-search.ts'
import type { RecordSet } from '../../dns/domain/rrset.ts'
import { type Pools, validatePool } from '../../naming/naming.ts'
import type { Reconciler } from '../../reconciler/reconciler.ts'
import { RETRY_AFTER_S, sendError } from '../errors.ts'
import { type Handler, type Handlers, validated } from '../handlers.ts'
import { getPoolDomain } from '../validate.ts'
import { toPlannedChange } from './converge.ts'

export interface NameOperations {
  readonly search: NameSearch
  readonly read: NameReader
  readonly reconciler: Pick<Reconciler, 'compareName' | 'planAction'>
  readonly pools: () => Pools
  readonly coolOffMs: number
  /** Whether an address in 127/8 can be that of a load balancer. */
  readonly acceptsLoopback: boolean
}

const toWireRecord = ({ name, type, ttl, values }: RecordSet) => ({ name, type, ttl, data: [...values] })

const BUSY = 'Another replica is updating the zone; try again in a moment.'

/** The names of all pools, and one name, whether or not it is free. */
export const nameHandlers = ({
  search,
  read,
  reconciler,
  pools,
  coolOffMs,
  acceptsLoopback,
}: NameOperations): Pick<Handlers, 'searchNames' | 'describeName' | 'compareNameRecords' | 'planNameAction'> => {
  /** Rejects other pools before it looks at the name. */
  const inPool =
    (handle: Handler): Handler =>
    c => {
      const rejection = validatePool(getPoolDomain(c), pools())
      return rejection ? sendError(c, rejection) : handle(c)
    }
  return {
    searchNames: validated(operations.searchNames, async (c, { query }) => {
      const outcome = await search(query)
      if (outcome.kind === 'invalid-cursor') {
        return sendError(c, { ...outcome, detail: 'cursor must be the nextCursor of an earlier page of this search.' })
      }
      c.env.outcome = outcome.kind
      const body: NamesResponse = {
        names: [...outcome.names],
        ...(outcome.next === null ? {} : { nextCursor: encodeCursor(outcome.next) }),
      }
      return c.json(body, 200)
    }),
    describeName: inPool(
      validated(operations.describeName, async (c, { path: { domain: poolDomain, subdomain } }) => {
        c.env.outcome = 'found'
        return c.json(await read({ poolDomain, subdomain }), 200)
      }),
    ),
    compareNameRecords: inPool(
      validated(operations.compareNameRecords, async (c, { path: { domain: poolDomain, subdomain } }) => {
        const readAt = new Date().toISOString()
        const outcome = await reconciler.compareName(poolDomain, subdomain)
        if (outcome.kind === 'busy' || outcome.kind === 'unavailable') {
          const detail = outcome.kind === 'busy' ? BUSY : outcome.reason
          return sendError(c, { kind: 'dns-unavailable', detail, retryAfterSeconds: RETRY_AFTER_S })
        }
        if (outcome.kind !== 'compared') return sendError(c, outcome)
        c.env.outcome = outcome.kind
        const body: NameRecords = {
          poolDomain,
          subdomain,
          desired: outcome.desired.map(toWireRecord),
          found: outcome.found.map(toWireRecord),
          changes: outcome.changes.map(change => toPlannedChange(subdomain, change)),
          ...(outcome.conflict === null ? {} : { conflict: outcome.conflict }),
          readAt,
        }
        return c.json(body, 200)
      }),
    ),
    planNameAction: inPool(
      validated(operations.planNameAction, async (c, { path: { domain: poolDomain, subdomain }, query }) => {
        const name: PoolName = { poolDomain, subdomain }
        const { action, loadBalancerIP } = query
        const details = await read(name)
        const obstacle = findActionObstacle(details.state, action, { address: loadBalancerIP, acceptsLoopback })
        if (obstacle) return sendError(c, obstacle)
        // The obstacles exclude it.
        if (details.state === 'free') return sendError(c, { kind: 'not-found' })
        const to = toStateAfter(details.state, action, coolOffMs)
        const plan: NamePlan = {
          ...name,
          action,
          from: details.state,
          to,
          ...(to === 'cooling-off' ? { coolOffSeconds: Math.ceil(coolOffMs / 1_000) } : {}),
          changes: [],
          deletedRecords: [],
        }
        c.env.outcome = 'planned'
        if (action === 'lift-cool-off' || details.state === 'reserved') return c.json(plan, 200)
        const records = await reconciler.planAction(
          name.poolDomain,
          name.subdomain,
          action === 'release' ? { action } : { action, address: loadBalancerIP ?? null },
        )
        if (records.kind !== 'planned') return sendError(c, records)
        const body: NamePlan = {
          ...plan,
          changes: records.changes.map(change => toPlannedChange(name.subdomain, change)),
          deletedRecords: records.deletedRecords.map(toWireRecord),
          ...(records.unavailable === null ? {} : { unavailable: records.unavailable }),
          ...(records.conflict === null ? {} : { conflict: records.conflict }),
        }
        return c.json(body, 200)
      }),
    ),
  }
}

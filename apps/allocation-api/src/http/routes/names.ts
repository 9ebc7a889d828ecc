import {
  encodeCursor,
  type NamePlan,
  type NameRecords,
  type NamesResponse,
  namePlanQuery,
  namesQuery,
  subdomain,
} from '@pool/contract'
import { Hono } from 'hono'
import * as z from 'zod'
import { findActionObstacle, toStateAfter } from '../../allocation/domain/name-action.ts'
import type { NameReader } from '../../allocation/name-details.ts'
import type { NameSearch } from '../../allocation/name-search.ts'
import type { RecordSet } from '../../dns/domain/rrset.ts'
import { type PoolName, type Pools, validatePool } from '../../naming/naming.ts'
import type { NameInspection } from '../../reconciler/reconciler.ts'
import { RETRY_AFTER_S, sendError } from '../errors.ts'
import type { HttpEnv } from '../types.ts'
import { getPoolDomain, validate } from '../validate.ts'
import { toPlannedChange } from './converge.ts'

export interface NameOperations {
  readonly search: NameSearch
  readonly read: NameReader
  readonly reconciler: NameInspection
  readonly pools: () => Pools
  readonly coolOffMs: number
  /** Whether an address in 127/8 can be that of a load balancer. */
  readonly acceptsLoopback: boolean
}

const toWireRecord = ({ name, type, ttl, values }: RecordSet) => ({ name, type, ttl, data: [...values] })

const BUSY = 'Another replica is updating the zone; try again in a moment.'

/** The search. */
export const nameSearchRoutes = ({ search }: Pick<NameOperations, 'search'>) =>
  new Hono<HttpEnv>().get('/', validate('query', namesQuery), async c => {
    const outcome = await search(c.req.valid('query'))
    if (outcome.kind === 'invalid-cursor') {
      return sendError(c, { ...outcome, detail: 'cursor must be the nextCursor of an earlier page of this search.' })
    }
    c.env.outcome = outcome.kind
    const body: NamesResponse = {
      names: [...outcome.names],
      ...(outcome.next === null ? {} : { nextCursor: encodeCursor(outcome.next) }),
    }
    return c.json(body, 200)
  })

/** One name, whether or not it is free. */
export const nameRoutes = ({ read, reconciler, pools, coolOffMs, acceptsLoopback }: NameOperations) =>
  new Hono<HttpEnv>()
    .use('/:domain/names/*', async (c, next) => {
      const rejection = validatePool(getPoolDomain(c), pools())
      return rejection ? sendError(c, rejection) : next()
    })
    .get('/:domain/names/:subdomain', validate('param', z.object({ subdomain })), async c => {
      const name: PoolName = { ...c.req.valid('param'), poolDomain: getPoolDomain(c) }
      c.env.outcome = 'found'
      return c.json(await read(name), 200)
    })
    .get('/:domain/names/:subdomain/records', validate('param', z.object({ subdomain })), async c => {
      const name: PoolName = { ...c.req.valid('param'), poolDomain: getPoolDomain(c) }
      const readAt = new Date().toISOString()
      const outcome = await reconciler.compareName(name.poolDomain, name.subdomain)
      if (outcome.kind === 'busy' || outcome.kind === 'unavailable') {
        const detail = outcome.kind === 'busy' ? BUSY : outcome.reason
        return sendError(c, { kind: 'dns-unavailable', detail, retryAfterSeconds: RETRY_AFTER_S })
      }
      if (outcome.kind !== 'compared') return sendError(c, outcome)
      c.env.outcome = outcome.kind
      const body: NameRecords = {
        ...name,
        desired: outcome.desired.map(toWireRecord),
        found: outcome.found.map(toWireRecord),
        changes: outcome.changes.map(change => toPlannedChange(name.subdomain, change)),
        ...(outcome.conflict === null ? {} : { conflict: outcome.conflict }),
        readAt,
      }
      return c.json(body, 200)
    })
    .get(
      '/:domain/names/:subdomain/plan',
      validate('param', z.object({ subdomain })),
      validate('query', namePlanQuery),
      async c => {
        const name: PoolName = { ...c.req.valid('param'), poolDomain: getPoolDomain(c) }
        const { action, loadBalancerIP } = c.req.valid('query')
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
      },
    )

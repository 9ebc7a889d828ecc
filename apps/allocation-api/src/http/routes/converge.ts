import {
  type ConvergePendingResponse,
  type ConvergeResponse,
  convergeQuery,
  type PlannedChange,
  type RepublishPendingResponse,
  type RepublishResponse,
  republishQuery,
} from '@pool/contract'
import { type Context, Hono } from 'hono'
import type { Unavailable } from '../../dns/domain/result.ts'
import type { RecordChange } from '../../dns/domain/rrset.ts'
import type { Reconciler, RepairResult } from '../../reconciler/reconciler.ts'
import type { Busy } from '../../reconciler/zone-lock.ts'
import { RETRY_AFTER_S, sendError } from '../errors.ts'
import type { HttpEnv } from '../types.ts'
import { getCaller, getPoolDomain, validate } from '../validate.ts'

const toPlannedChange = (subdomain: string, change: RecordChange): PlannedChange => {
  if (change.kind === 'delete') return { subdomain, action: 'delete', name: change.name, type: change.type }
  const { name, type, ttl, values } = change.set
  return { subdomain, action: 'upsert', name, type, ttl, values: [...values] }
}

const sendUnavailable = (c: Context<HttpEnv>, outcome: Unavailable | Busy) => {
  const retryAfterMs = outcome.kind === 'unavailable' ? outcome.retryAfterMs : undefined
  const retryAfterSeconds = retryAfterMs === undefined ? RETRY_AFTER_S : Math.ceil(retryAfterMs / 1_000)
  const detail = outcome.kind === 'busy' ? 'Another replica is updating this zone.' : outcome.reason
  return sendError(c, { kind: 'dns-unavailable', detail, retryAfterSeconds })
}

const toWarning = ({ pending, failing }: Pick<RepairResult, 'pending' | 'failing'>) => ({
  warning: 'dns-pending' as const,
  detail: `${pending} name(s) do not have their desired records yet; ${failing} of them failed. Retrying automatically.`,
})

export const convergeRoutes = (reconciler: Pick<Reconciler, 'preview' | 'repair' | 'republish'>) =>
  new Hono<HttpEnv>()
    .post('/:domain/converge', validate('query', convergeQuery), async c => {
      const isDryRun = c.req.valid('query').dryRun === 'true'
      const poolDomain = getPoolDomain(c)
      const outcome = await (isDryRun ? reconciler.preview(poolDomain) : reconciler.repair(poolDomain))
      if (outcome.kind === 'unavailable' || outcome.kind === 'busy') return sendUnavailable(c, outcome)
      if (outcome.kind !== 'compared' && outcome.kind !== 'repaired') return sendError(c, outcome)
      c.set('outcome', outcome.kind)
      const body: ConvergeResponse = {
        poolDomain,
        dryRun: isDryRun,
        changes: outcome.changes.map(({ subdomain, change }) => toPlannedChange(subdomain, change)),
        changeCount: outcome.changeCount,
        conflicts: outcome.conflicts.map(({ subdomain, reason }) => ({ subdomain, detail: reason })),
        conflictCount: outcome.conflictCount,
      }
      if (outcome.kind === 'compared' || outcome.pending === 0) return c.json(body, 200)
      const pending: ConvergePendingResponse = { ...body, ...toWarning(outcome) }
      return c.json(pending, 202)
    })
    .post('/:domain/republish', validate('query', republishQuery), async c => {
      const isDryRun = c.req.valid('query').dryRun === 'true'
      const poolDomain = getPoolDomain(c)
      const outcome = await reconciler.republish(poolDomain, isDryRun ? null : getCaller(c))
      if (outcome.kind === 'busy') return sendUnavailable(c, outcome)
      if (outcome.kind !== 'planned' && outcome.kind !== 'republished') return sendError(c, outcome)
      c.set('outcome', outcome.kind)
      const body: RepublishResponse = {
        poolDomain,
        dryRun: isDryRun,
        changes: outcome.changes.map(({ subdomain, change }) => toPlannedChange(subdomain, change)),
        changeCount: outcome.changeCount,
        nameCount: outcome.nameCount,
      }
      if (outcome.kind === 'planned' || outcome.pending === 0) return c.json(body, 200)
      const pending: RepublishPendingResponse = { ...body, ...toWarning(outcome) }
      return c.json(pending, 202)
    })

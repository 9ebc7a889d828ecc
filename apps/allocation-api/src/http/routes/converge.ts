import { type ConvergePendingResponse, type ConvergeResponse, convergeQuery, type PlannedChange } from '@pool/contract'
import { Hono } from 'hono'
import type { RecordChange } from '../../dns/domain/rrset.ts'
import type { Reconciler } from '../../reconciler/reconciler.ts'
import { RETRY_AFTER_S, sendError } from '../errors.ts'
import type { HttpEnv } from '../types.ts'
import { getPoolDomain, validate } from '../validate.ts'

const toPlannedChange = (subdomain: string, change: RecordChange): PlannedChange => {
  if (change.kind === 'delete') return { subdomain, action: 'delete', name: change.name, type: change.type }
  const { name, type, ttl, values } = change.set
  return { subdomain, action: 'upsert', name, type, ttl, values: [...values] }
}

export const convergeRoutes = (reconciler: Pick<Reconciler, 'preview' | 'repair'>) =>
  new Hono<HttpEnv>().post('/:domain/converge', validate('query', convergeQuery), async c => {
    const isDryRun = c.req.valid('query').dryRun === 'true'
    const poolDomain = getPoolDomain(c)
    const outcome = await (isDryRun ? reconciler.preview(poolDomain) : reconciler.repair(poolDomain))
    if (outcome.kind === 'unavailable' || outcome.kind === 'busy') {
      const retryAfterMs = outcome.kind === 'unavailable' ? outcome.retryAfterMs : undefined
      const retryAfterSeconds = retryAfterMs === undefined ? RETRY_AFTER_S : Math.ceil(retryAfterMs / 1_000)
      const detail = outcome.kind === 'busy' ? 'Another replica is updating this zone.' : outcome.reason
      return sendError(c, { kind: 'dns-unavailable', detail, retryAfterSeconds })
    }
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
    const detail = `${outcome.pending} name(s) do not have their desired records yet; ${outcome.failing} of them failed. Retrying automatically.`
    const pending: ConvergePendingResponse = { ...body, warning: 'dns-pending', detail }
    return c.json(pending, 202)
  })

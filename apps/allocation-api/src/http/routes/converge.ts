import { type ConvergePendingResponse, type ConvergeResponse, convergeQuery, type PlannedChange } from '@pool/contract'
import { Hono } from 'hono'
import type { RecordChange } from '../../dns/domain/rrset.ts'
import type { ConvergeOutcome } from '../../reconciler/reconciler.ts'
import { problem, RETRY_AFTER_S } from '../errors.ts'
import type { HttpEnv } from '../types.ts'
import { parse, poolOf } from '../validate.ts'

export interface ConvergeVerbs {
  readonly converge: (poolDomain: string, options: { isDryRun: boolean }) => Promise<ConvergeOutcome>
}

const shown = (subdomain: string, change: RecordChange): PlannedChange => {
  if (change.kind === 'delete') return { subdomain, action: 'delete', name: change.name, type: change.type }
  const { name, type, ttl, values } = change.set
  return { subdomain, action: 'upsert', name, type, ttl, values: [...values] }
}

export const convergeRoutes = (verbs: ConvergeVerbs) =>
  new Hono<HttpEnv>().post('/:domain/converge', async c => {
    const query = parse(convergeQuery, c.req.query())
    if (!query.ok) return problem(c, query.refused)
    const isDryRun = query.value.dryRun === 'true'
    const outcome = await verbs.converge(poolOf(c), { isDryRun })
    if (outcome.kind === 'unavailable' || outcome.kind === 'busy') {
      const pauseMs = outcome.kind === 'unavailable' ? outcome.retryAfterMs : undefined
      const retryAfterSeconds = pauseMs === undefined ? RETRY_AFTER_S : Math.ceil(pauseMs / 1_000)
      const detail = outcome.kind === 'busy' ? 'Others write this zone just now.' : outcome.reason
      return problem(c, { kind: 'dns-unavailable', detail, retryAfterSeconds })
    }
    if (outcome.kind !== 'compared' && outcome.kind !== 'repaired') return problem(c, outcome)
    c.set('outcome', outcome.kind)
    const body: ConvergeResponse = {
      poolDomain: poolOf(c),
      dryRun: isDryRun,
      changes: outcome.changes.map(({ subdomain, change }) => shown(subdomain, change)),
      changeCount: outcome.changeCount,
      conflicts: outcome.conflicts.map(({ subdomain, reason }) => ({ subdomain, detail: reason })),
      conflictCount: outcome.conflictCount,
    }
    if (outcome.kind === 'compared' || outcome.pending === 0) return c.json(body, 200)
    const detail = `${outcome.pending} name(s) not as desired yet, ${outcome.failing} of them failing. They are tried until it succeeds.`
    const pending: ConvergePendingResponse = { ...body, warning: 'dns-pending', detail }
    return c.json(pending, 202)
  })

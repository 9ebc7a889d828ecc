import {
  type ConvergePendingResponse,
  type ConvergeResponse,
  encodeCursor,
  type FormerRecordsResponse,
  type Orphan,
  type OrphansPendingResponse,
  type OrphansResponse,
  operations,
  orphansRequest,
  type RepublishPendingResponse,
  type RepublishResponse,
  type ResumePendingResponse,
  type ResumeResponse,
  resumeRequest,
} from '@pool/contract'
import type { Context } from 'hono'
import type { Unavailable } from '../../dns/domain/result.ts'
import type { Orphan as FoundOrphan } from '../../reconciler/domain/orphan.ts'
import type { Busy } from '../../reconciler/locked-zone.ts'
import type { OrphanAction } from '../../reconciler/orphans.ts'
import type { ZoneOperations } from '../../reconciler/reconciler.ts'
import type { PendingCounts } from '../../reconciler/repository.ts'
import {
  getCaller,
  type Handlers,
  type HttpEnv,
  parseBody,
  parseWrite,
  RETRY_AFTER_S,
  readJson,
  sendError,
  validated,
} from '../request.ts'
import { toPlannedChange, toWireRecord } from './records.ts'

const sendUnavailable = (c: Context<HttpEnv>, outcome: Unavailable | Busy) => {
  const retryAfterMs = outcome.kind === 'unavailable' ? outcome.retryAfterMs : undefined
  const retryAfterSeconds = retryAfterMs === undefined ? RETRY_AFTER_S : Math.ceil(retryAfterMs / 1_000)
  const detail = outcome.kind === 'busy' ? 'Another replica is updating this zone.' : outcome.reason
  return sendError(c, { kind: 'dns-unavailable', detail, retryAfterSeconds })
}

const toWarning = ({ pending, failing }: PendingCounts) => ({
  warning: 'dns-pending' as const,
  detail: `${pending} name(s) do not have their desired records yet; ${failing} of them failed. The service writes the records as soon as it can.`,
})

const toOrphan = ({ subdomain, target, records, otherCount }: FoundOrphan): Orphan => ({
  subdomain,
  ...target,
  records: records.map(toWireRecord),
  otherRecordCount: otherCount,
})

const MAX_FORMER_RECORDS = 1_000

export const convergeHandlers = (
  reconciler: ZoneOperations,
): Pick<
  Handlers,
  'convergeZone' | 'adoptOrphans' | 'removeOrphans' | 'resumeZone' | 'listFormerRecords' | 'republishZone'
> => {
  const changeOrphans = async (c: Context<HttpEnv>, action: OrphanAction, isDryRun: boolean): Promise<Response> => {
    const json = await readJson(c)
    if (!json.ok) return sendError(c, json.error)
    const write = await parseWrite(c, orphansRequest, json.value === undefined ? {} : json.value)
    if (!write.ok) return sendError(c, write.error)
    const { command, caller } = write.value
    const { poolDomain, subdomains = null } = command
    const outcome = await reconciler.changeOrphans(poolDomain, { action, caller: isDryRun ? null : caller, subdomains })
    if (outcome.kind === 'unavailable' || outcome.kind === 'busy') return sendUnavailable(c, outcome)
    if (outcome.kind !== 'orphans' && outcome.kind !== 'changed') return sendError(c, outcome)
    c.env.outcome = outcome.kind
    const body: OrphansResponse = {
      poolDomain,
      dryRun: isDryRun,
      orphans: outcome.orphans.map(toOrphan),
      orphanCount: outcome.orphanCount,
      changedCount: outcome.changedCount,
    }
    if (outcome.kind === 'orphans' || outcome.pending === 0) return c.json(body, 200)
    const pending: OrphansPendingResponse = { ...body, ...toWarning(outcome) }
    return c.json(pending, 202)
  }
  return {
    convergeZone: validated(operations.convergeZone, async (c, { path: { domain: poolDomain }, query }) => {
      const isDryRun = query.dryRun === 'true'
      const outcome = await (isDryRun ? reconciler.preview(poolDomain) : reconciler.repair(poolDomain))
      if (outcome.kind === 'unavailable' || outcome.kind === 'busy') return sendUnavailable(c, outcome)
      if (outcome.kind !== 'compared' && outcome.kind !== 'repaired') return sendError(c, outcome)
      c.env.outcome = outcome.kind
      const body: ConvergeResponse = {
        poolDomain,
        dryRun: isDryRun,
        changes: outcome.changes.map(({ subdomain, change }) => toPlannedChange(subdomain, change)),
        changeCount: outcome.changeCount,
        conflicts: outcome.conflicts.map(({ subdomain, reason }) => ({ subdomain, detail: reason })),
        conflictCount: outcome.conflictCount,
        orphans: outcome.orphans.map(toOrphan),
        orphanCount: outcome.orphanCount,
        ...(outcome.stopCause ? { stopped: outcome.stopCause } : {}),
      }
      if (outcome.kind === 'compared' || outcome.pending === 0) return c.json(body, 200)
      const pending: ConvergePendingResponse = { ...body, ...toWarning(outcome) }
      return c.json(pending, 202)
    }),
    adoptOrphans: validated(operations.adoptOrphans, (c, { query }) =>
      changeOrphans(c, 'adopt', query.dryRun === 'true'),
    ),
    removeOrphans: validated(operations.removeOrphans, (c, { query }) =>
      changeOrphans(c, 'remove', query.dryRun === 'true'),
    ),
    resumeZone: validated(operations.resumeZone, async (c, { path: { domain: poolDomain }, query }) => {
      const isDryRun = query.dryRun === 'true'
      const body = await parseBody(c, resumeRequest)
      if (!body.ok) return sendError(c, body.error)
      const { trust } = body.value
      const outcome = await reconciler.resume(poolDomain, { trust, caller: isDryRun ? null : getCaller(c) })
      if (outcome.kind === 'unavailable' || outcome.kind === 'busy') return sendUnavailable(c, outcome)
      if (outcome.kind !== 'planned' && outcome.kind !== 'resumed') return sendError(c, outcome)
      c.env.outcome = outcome.kind
      const response: ResumeResponse = {
        poolDomain,
        dryRun: isDryRun,
        cause: outcome.stopCause,
        differences: outcome.differences.map(({ subdomain, databaseAddress, zoneAddress, action }) => ({
          subdomain,
          ...(databaseAddress === null ? {} : { databaseAddress }),
          ...(zoneAddress === null ? {} : { zoneAddress }),
          action,
        })),
        differenceCount: outcome.differenceCount,
      }
      if (outcome.kind === 'planned' || outcome.pending === 0) return c.json(response, 200)
      const pending: ResumePendingResponse = { ...response, ...toWarning(outcome) }
      return c.json(pending, 202)
    }),
    listFormerRecords: validated(operations.listFormerRecords, async (c, { path: { domain: poolDomain }, query }) => {
      const offset = Number(query.cursor ?? 0)
      const outcome = await reconciler.listFormerRecords(poolDomain, offset, MAX_FORMER_RECORDS)
      if (outcome.kind !== 'listed') return sendError(c, outcome)
      c.env.outcome = outcome.kind
      const body: FormerRecordsResponse = {
        poolDomain,
        records: outcome.records.map(({ data, ...record }) => ({ ...record, ...(data ? { data } : {}) })),
        ...(outcome.records.length === MAX_FORMER_RECORDS
          ? { nextCursor: encodeCursor(String(offset + MAX_FORMER_RECORDS)) }
          : {}),
      }
      return c.json(body, 200)
    }),
    republishZone: validated(operations.republishZone, async (c, { path: { domain: poolDomain }, query }) => {
      const isDryRun = query.dryRun === 'true'
      const outcome = await reconciler.republish(poolDomain, isDryRun ? null : getCaller(c))
      if (outcome.kind === 'busy') return sendUnavailable(c, outcome)
      if (outcome.kind !== 'planned' && outcome.kind !== 'republished') return sendError(c, outcome)
      c.env.outcome = outcome.kind
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
    }),
  }
}

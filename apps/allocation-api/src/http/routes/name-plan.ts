import { type NameAction, type NamePlan, splitTarget, type TargetChange } from '@pool/contract'
import type { Context } from 'hono'
import { toStateAfter } from '../../allocation/domain/name-action.ts'
import type { NameReader } from '../../allocation/name-details.ts'
import { planTarget } from '../../dns/domain/target.ts'
import type { PoolName } from '../../naming/naming.ts'
import type { Reconciler } from '../../reconciler/reconciler.ts'
import { type HttpEnv, sendError } from '../request.ts'
import { toPlannedChange, toWireRecord } from './records.ts'

export interface NamePlanning {
  readonly read: NameReader
  readonly reconciler: Pick<Reconciler, 'planAction'>
  readonly coolOffMs: number
}

export interface PlannedRequest {
  readonly action: NameAction
  /** Of the target, by an update; absent: it stays. */
  readonly change?: TargetChange | undefined
}

/** Responds to a dry run, whose request would take effect, with what it would do. */
export const sendNamePlan = async (
  c: Context<HttpEnv>,
  { read, reconciler, coolOffMs }: NamePlanning,
  { poolDomain, subdomain }: PoolName,
  { action, change }: PlannedRequest,
): Promise<Response> => {
  const { state, ...details } = await read({ poolDomain, subdomain })
  // It has changed since the request was found to take effect.
  if (state === 'free') return sendError(c, { kind: 'not-found' })
  const to = toStateAfter(state, action, coolOffMs)
  const plan: NamePlan = {
    poolDomain,
    subdomain,
    action,
    from: state,
    to,
    ...(to === 'cooling-off' ? { coolOffSeconds: Math.ceil(coolOffMs / 1_000) } : {}),
    changes: [],
    deletedRecords: [],
  }
  c.env.outcome = 'planned'
  if (action === 'lift-cool-off' || state === 'reserved') return c.json(plan, 200)
  const records = await reconciler.planAction(
    poolDomain,
    subdomain,
    action === 'release'
      ? { action }
      : { action, target: change ? planTarget(splitTarget(details).target, change).target : null },
  )
  if (records.kind !== 'planned') return sendError(c, records)
  const body: NamePlan = {
    ...plan,
    changes: records.changes.map(change => toPlannedChange(subdomain, change)),
    deletedRecords: records.deletedRecords.map(toWireRecord),
    ...(records.unavailable === null ? {} : { unavailable: records.unavailable }),
    ...(records.conflict === null ? {} : { conflict: records.conflict }),
  }
  return c.json(body, 200)
}

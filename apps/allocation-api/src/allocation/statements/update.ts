import type { Target } from '@pool/contract'
import type { RecordSet } from '../../dns/domain/rrset.ts'
import { type TargetPlan, targetOf, targetText, toTargetColumns } from '../../dns/domain/target.ts'
import { KEYS, storeOutcomes } from '../../idempotency/idempotency.ts'
import { NO_RECORDS } from '../../records/domain/stored.ts'
import type { TenantRecords, UpdateCommand, UpdateDecision } from '../domain/types.ts'
import { type AllocationRow, toActiveAllocation } from '../rows.ts'
import {
  COLUMNS,
  hasRecordsIn,
  IS_LIVE,
  insertHistory,
  isInTime,
  isRowOf,
  type NameRequest,
  type NameStatement,
  requests,
  setDesiredRecords,
} from '../sql.ts'

/** Without a token, the caller must be an operator. */
export interface UpdateRequest extends NameRequest, Omit<UpdateCommand, 'change'> {
  readonly tokenHash?: Buffer | undefined
  /** Null: the target stays. */
  readonly plan: TargetPlan | null
  /** What the tenant had set when the change was planned; absent: nothing. */
  readonly tenant?: TenantRecords
  /** The desired records of the new target, with what the tenant has set. */
  readonly records: readonly RecordSet[]
}

export const NO_TENANT_RECORDS: TenantRecords = { revision: 0, records: NO_RECORDS }

/**
 * `version`: null if the target is the same as before. `target-changed`: the plan is of another target than `formerTarget`, or of
 * other records of its tenant than `tenant`.
 */
export type UpdateRow =
  | (AllocationRow & { readonly outcome: 'updated'; readonly version: number | null })
  | { readonly outcome: 'target-changed'; readonly formerTarget: Target; readonly tenant: TenantRecords | null }
  | { readonly outcome: 'not-found' | 'not-active' | 'token-mismatch' }

/**
 *   input     the requests
 *   locked    the requests with the locked name, and whether its state, its token and its target permit the change
 *   updated   the names. Without a plan, nothing changes.
 *   revised   the new revision of what their tenants have set, which a delegation ends
 *   changed   those with another target
 *   desired   sets their desired records
 *   history   'updated' for each of them
 *   outcomes  of the requests that are valid
 *   stored    those of the keys
 */
const TEXT = `
  with input as (${requests('load_balancer_ip inet, target jsonb, replaced text[], kept jsonb, desired jsonb, tenant_revision bigint')}),
    locked as (
      select input.*, coalesce(name.outcome, 'not-found') as outcome, former_target, tenant
      from input left join lateral (
        select ${targetOf('a')} as former_target, case when a.records_revision > 0 then (
            select jsonb_build_object('revision', t.revision, 'records', coalesce(t.records, '${JSON.stringify(NO_RECORDS)}'))
            from tenant_records t where t.pool_domain = a.pool_domain and t.subdomain = a.subdomain
          ) end as tenant, case
            when a.state <> 'active' then 'not-active'
            when a.token_hash <> input.token_hash then 'token-mismatch'
            when replaced is not null and ${targetOf('a')} - replaced is distinct from kept then 'target-changed'
            when replaced is not null and a.records_revision <> tenant_revision then 'target-changed'
            else 'updated'
          end as outcome
        from pool_allocations a where ${isRowOf('input')} and ${IS_LIVE} and is_new limit 1
        for update
      ) name on true
    ),
    updated as (
      update pool_allocations a set
        load_balancer_ip = case when replaced is null then a.load_balancer_ip else locked.load_balancer_ip end,
        target = case when replaced is null then a.target else locked.target end,
        records_revision = case when a.records_revision = 0 or replaced is null then a.records_revision
          else a.records_revision + 1 end
      from locked where locked.outcome = 'updated' and ${isRowOf('locked')}
      returning a.*, position, former_target, desired, replaced, actor, address, request_id, ${KEYS}
    ),
    revised as (
      update tenant_records t set revision = a.records_revision,
        records = case when a.target ? 'nameservers' then null else t.records end,
        due_at = case when a.target ? 'nameservers' then null else t.due_at end
      from updated a
      where a.records_revision > 0 and replaced is not null and t.pool_domain = a.pool_domain and t.subdomain = a.subdomain
      returning 1
    ),
    changed as (select * from updated where ${targetOf('updated')} <> former_target),
    desired as (${setDesiredRecords('changed', 'same')}),
    history as (
      ${insertHistory('changed order by position', `'updated', 'active', 'active'`, {
        detail: `${targetText('former_target')} || ' replaced by ' || ${targetText(targetOf('changed'))}`,
      })}
    ),
    outcomes as (
      select ${KEYS}, (select to_jsonb(r) from (select 'updated' as outcome, ${COLUMNS}, desired.version) r) as result
      from updated a left join desired on ${hasRecordsIn('desired')}
    ),
    stored as (${storeOutcomes('outcomes')})
  select locked.position, is_new as "isNew", outcome, ${COLUMNS}, desired.version,
    locked.former_target as "formerTarget", locked.tenant
  from locked left join updated a on a.position = locked.position left join desired on ${hasRecordsIn('desired')}
  where ${isInTime('updated', 'revised', 'desired', 'history', 'stored')}`

export const toUpdateDecision = (row: UpdateRow): UpdateDecision => {
  if (row.outcome === 'updated') {
    return { kind: row.outcome, allocation: toActiveAllocation(row), version: row.version }
  }
  if (row.outcome !== 'target-changed') return { kind: row.outcome }
  return { kind: row.outcome, current: row.formerTarget, tenant: row.tenant ?? NO_TENANT_RECORDS }
}

/** Changes the target of an active name, and its records with it. */
export const updateStatement: NameStatement<UpdateRequest, UpdateRow, UpdateDecision> = {
  text: TEXT,
  toColumns: ({ plan, records, tenant }) => ({
    ...toTargetColumns(plan?.target ?? null),
    replaced: plan?.replaced,
    // Null is no target: the statement returns the current one.
    kept: plan?.target ? plan.kept : null,
    desired: records,
    tenant_revision: (tenant ?? NO_TENANT_RECORDS).revision,
  }),
  toDecision: toUpdateDecision,
}

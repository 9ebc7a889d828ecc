import type { RecordSet } from '../../dns/domain/rrset.ts'
import { KEYS, storeOutcomes } from '../../idempotency/idempotency.ts'
import type { UpdateCommand, UpdateDecision } from '../domain/types.ts'
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
export interface UpdateRequest extends NameRequest, UpdateCommand {
  readonly tokenHash?: Buffer | undefined
  /** The desired records of the new address. */
  readonly records: readonly RecordSet[]
}

/** `version`: null if the address is the same as before. */
export type UpdateRow =
  | (AllocationRow & { readonly outcome: 'updated'; readonly version: number | null })
  | { readonly outcome: 'not-found' | 'not-active' | 'token-mismatch' }

/**
 *   input     the requests
 *   locked    the requests with the locked name, and whether its state and its token permit the change
 *   updated   the names. Without an address, nothing changes.
 *   changed   those with another address
 *   desired   sets their desired records
 *   history   'updated' for each of them
 *   outcomes  of the requests that are valid
 *   stored    those of the keys
 */
const TEXT = `
  with input as (${requests('load_balancer_ip inet, desired jsonb')}),
    locked as (
      select input.*, coalesce(name.outcome, 'not-found') as outcome, former_ip
      from input left join lateral (
        select a.load_balancer_ip as former_ip, case
            when a.state <> 'active' then 'not-active'
            when a.token_hash <> input.token_hash then 'token-mismatch'
            else 'updated'
          end as outcome
        from pool_allocations a where ${isRowOf('input')} and ${IS_LIVE} and is_new limit 1
        for update
      ) name on true
    ),
    updated as (
      update pool_allocations a set load_balancer_ip = coalesce(locked.load_balancer_ip, a.load_balancer_ip)
      from locked where locked.outcome = 'updated' and ${isRowOf('locked')}
      returning a.*, position, former_ip, desired, actor, address, request_id, ${KEYS}
    ),
    changed as (select * from updated where load_balancer_ip <> former_ip),
    desired as (${setDesiredRecords('changed', 'same')}),
    history as (
      ${insertHistory('changed order by position', `'updated', 'active', 'active'`, {
        detail: `host(former_ip) || ' replaced by ' || host(load_balancer_ip)`,
      })}
    ),
    outcomes as (
      select ${KEYS}, (select to_jsonb(r) from (select 'updated' as outcome, ${COLUMNS}, desired.version) r) as result
      from updated a left join desired on ${hasRecordsIn('desired')}
    ),
    stored as (${storeOutcomes('outcomes')})
  select locked.position, is_new as "isNew", outcome, ${COLUMNS}, desired.version
  from locked left join updated a on a.position = locked.position left join desired on ${hasRecordsIn('desired')}
  where ${isInTime('updated', 'desired', 'history', 'stored')}`

export const toUpdateDecision = (row: UpdateRow): UpdateDecision =>
  row.outcome === 'updated'
    ? { kind: row.outcome, allocation: toActiveAllocation(row), version: row.version }
    : { kind: row.outcome }

/** Changes the address of an active name, and its records with it. */
export const updateStatement: NameStatement<UpdateRequest, UpdateRow, UpdateDecision> = {
  text: TEXT,
  toColumns: ({ loadBalancerIP, records }) => ({ load_balancer_ip: loadBalancerIP, desired: records }),
  toDecision: toUpdateDecision,
}

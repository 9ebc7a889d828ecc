import { NOW, toInterval } from '@pool/runtime/database/time'
import { KEYS, storeOutcomes } from '../../idempotency/idempotency.ts'
import type { ReleaseDecision } from '../domain/types.ts'
import { type AllocationRowWithDns, toAllocation } from '../rows.ts'
import {
  COLUMNS_WITH_DNS,
  hasRecordsIn,
  IS_LIVE,
  insertHistory,
  isInTime,
  isRowOf,
  type NameRequest,
  type NameStatement,
  REQUEST,
  renewalColumns,
  requests,
  setDesiredRecords,
} from '../sql.ts'

/** The row has the allocation as it was. `withdrawalVersion`: null if the name never had records. */
export type ReleaseRow =
  | (AllocationRowWithDns & { readonly outcome: 'released'; readonly withdrawalVersion: number | null })
  | { readonly outcome: 'not-found' | 'token-mismatch' }

/**
 *   input      the requests
 *   locked     the requests with the locked name as it was, and whether the token permits the release
 *   released   the names, and when they become free
 *   kept       the rows that stay, invisible to clients: in the cool-off, or while a lineage holds the name
 *   deleted    the others
 *   withdrawn  active names have no desired records any more
 *   desired    sets that
 *   history    'released' for each of them
 *   outcomes   of the requests that release
 *   stored     those of the keys
 */
const toText = (coolOffMs: number): string => `
  with input as (${requests()}),
    locked as (
      select ${REQUEST}, a.*
      from input left join lateral (
        select a.*, case when coalesce(a.token_hash = input.token_hash, true) then 'released' else 'token-mismatch' end as outcome,
          case when a.state = 'active' then ${NOW} + ${toInterval(coolOffMs)} else a.cool_off_until end as free_at
        from pool_allocations a where ${isRowOf('input')} and ${IS_LIVE} and is_new limit 1
        for update
      ) a on true
    ),
    released as (
      select *, lineage_id is not null or coalesce(free_at > ${NOW}, false) as stays from locked where outcome = 'released'
    ),
    kept as (
      update pool_allocations a set
        state = 'released', expires_at = null, renewal_count = 0, cool_off_until = released.free_at
      from released where stays and ${isRowOf('released')}
      returning 1
    ),
    deleted as (
      delete from pool_allocations a using released where not stays and ${isRowOf('released')}
      returning 1
    ),
    withdrawn as (select *, '[]'::jsonb as desired from released where state = 'active'),
    desired as (${setDesiredRecords('withdrawn', 'same')}),
    history as (
      ${insertHistory('released order by position', `'released', state, 'none'`, { renewals: renewalColumns('renewal_count', 'expires_at') })}
    ),
    results as (
      select a.position, ${COLUMNS_WITH_DNS}, desired.version as "withdrawalVersion"
      from released a left join desired on ${hasRecordsIn('desired')}
        left join dns_names d on a.state = 'active' and ${hasRecordsIn('d')}
    ),
    outcomes as (
      select ${KEYS}, (select to_jsonb(r) from (select 'released' as outcome, results.*) r) as result
      from released join results using (position)
    ),
    stored as (${storeOutcomes('outcomes')})
  select results.*, locked.position, is_new as "isNew", coalesce(outcome, 'not-found') as outcome
  from locked left join results on results.position = locked.position
  where ${isInTime('kept', 'deleted', 'desired', 'history', 'stored')}`

export const toReleaseDecision = (row: ReleaseRow): ReleaseDecision =>
  row.outcome === 'released'
    ? { kind: row.outcome, allocation: toAllocation(row), version: row.withdrawalVersion }
    : { kind: row.outcome }

/** Frees a name. If it was active, its desired records become none. Without a token, any client can release it. */
export const releaseStatement = (coolOffMs: number): NameStatement<NameRequest, ReleaseRow, ReleaseDecision> => ({
  text: toText(coolOffMs),
  toColumns: () => ({}),
  toDecision: toReleaseDecision,
})

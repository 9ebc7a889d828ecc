import { NOW } from '@pool/runtime/database/time'
import {
  IS_COOLING_OFF,
  insertHistory,
  isInTime,
  isRowOf,
  type NameRequest,
  type NameStatement,
  REQUEST,
  renewalColumns,
  requests,
} from '../sql.ts'

/**
 *   locked       the requests with the locked name, if it is in its cool-off
 *   lifted       the names become free
 *   transitions  'expired' for a reservation that a lapse ended, then 'cool-off-lifted'
 */
const TEXT = `
  with input as (${requests()}),
    locked as (
      select ${REQUEST}, a.*
      from input left join lateral (
        select a.* from pool_allocations a where ${isRowOf('input')} and ${IS_COOLING_OFF} limit 1
        for update
      ) a on true
    ),
    lifted as (
      update pool_allocations a set state = 'released', expires_at = null, renewal_count = 0, cool_off_until = ${NOW}
      from locked where ${isRowOf('locked')}
      returning 1
    ),
    transitions as (
      select *, 1 as step, 'expired' as event, 'reserved' as from_state from locked where state = 'reserved'
      union all
      select *, 2, 'cool-off-lifted', 'none' from locked where state is not null
      order by position, step
    ),
    history as (
      ${insertHistory('transitions', `event, from_state, 'none'`, {
        renewals: renewalColumns(`case when event = 'expired' then renewal_count end`, 'expires_at'),
      })}
    )
  select position, is_new as "isNew", state is not null as "isLifted" from locked
  where ${isInTime('lifted', 'history')}`

/** Ends the cool-off of a name. False if the name is not in a cool-off. */
export const liftCoolOffStatement: NameStatement<NameRequest, { readonly isLifted: boolean }, boolean> = {
  text: TEXT,
  toColumns: () => ({}),
  toDecision: ({ isLifted }) => isLifted,
}

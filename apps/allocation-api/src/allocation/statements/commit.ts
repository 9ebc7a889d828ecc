import { NOW } from '@pool/runtime/database/time'
import type { RecordSet } from '../../dns/domain/rrset.ts'
import { toTargetColumns } from '../../dns/domain/target.ts'
import { KEYS, storeOutcomes } from '../../idempotency/idempotency.ts'
import type { CommitCommand, CommitDecision, TokenRejection } from '../domain/types.ts'
import { type AllocationRow, toActiveAllocation } from '../rows.ts'
import {
  COLUMNS,
  hasRecordsIn,
  IS_RESERVATION,
  insertHistory,
  isInTime,
  isRowOf,
  type NameRequest,
  type NameStatement,
  renewalColumns,
  requests,
  setDesiredRecords,
  tokenOutcome,
} from '../sql.ts'

export interface CommitRequest extends NameRequest, CommitCommand {
  readonly tokenHash: Buffer
  /** The desired records of the name. */
  readonly records: readonly RecordSet[]
}

/** The row of the result, which is also the outcome that is stored. The columns of the allocation are null in a rejection. */
export type CommitRow =
  | (AllocationRow & { readonly outcome: 'committed'; readonly version: number })
  | { readonly outcome: TokenRejection['kind'] }

/**
 *   input     the requests
 *   locked    the requests with the locked reservation, and whether its token and its expiry permit the commit. The lock
 *             waits for a concurrent writer of the row, then sees that writer's result. A subquery with a limit is executed
 *             once per row of `input`, in their order, and always with the index.
 *   updated   the active names
 *   desired   sets their desired records
 *   history   'committed' for each of them
 *   outcomes  of the requests that commit
 *   stored    those of the keys
 */
const TEXT = `
  with input as (${requests('sovereign_fqdn text, load_balancer_ip inet, target jsonb, desired jsonb')}),
    locked as (
      select input.*, coalesce(reservation.outcome, 'not-found') as outcome, renewals, reserved_until
      from input left join lateral (
        select ${tokenOutcome('committed')} as outcome, renewal_count as renewals, expires_at as reserved_until
        from pool_allocations a where ${isRowOf('input')} and ${IS_RESERVATION} and is_new limit 1
        for update
      ) reservation on true
    ),
    updated as (
      update pool_allocations a set
        state = 'active', expires_at = null, cool_off_until = null, former_token_hash = null,
        committed_at = greatest(${NOW}, a.reserved_at), sovereign_fqdn = locked.sovereign_fqdn,
        load_balancer_ip = locked.load_balancer_ip, target = locked.target, renewal_count = 0
      from locked where locked.outcome = 'committed' and ${isRowOf('locked')}
      returning a.*, position, desired, actor, address, request_id, renewals, reserved_until,
        ${KEYS}
    ),
    desired as (${setDesiredRecords('updated', 'new')}),
    history as (
      ${insertHistory('updated order by position', `'committed', 'reserved', 'active'`, {
        renewals: renewalColumns('renewals', 'reserved_until'),
      })}
    ),
    outcomes as (
      select ${KEYS}, (select to_jsonb(r) from (select 'committed' as outcome, ${COLUMNS}, desired.version) r) as result
      from updated a join desired on ${hasRecordsIn('desired')}
    ),
    stored as (${storeOutcomes('outcomes')})
  select locked.position, is_new as "isNew", outcome, ${COLUMNS}, desired.version
  from locked left join updated a on a.position = locked.position left join desired on ${hasRecordsIn('desired')}
  where ${isInTime('updated', 'desired', 'history', 'stored')}`

export const toCommitDecision = (row: CommitRow): CommitDecision =>
  row.outcome === 'committed'
    ? { kind: row.outcome, allocation: toActiveAllocation(row), version: row.version }
    : { kind: row.outcome }

/** Makes the reservation of a token active, and sets its desired records. */
export const commitStatement: NameStatement<CommitRequest, CommitRow, CommitDecision> = {
  text: TEXT,
  toColumns: ({ sovereignFQDN, target, records }) => ({
    sovereign_fqdn: sovereignFQDN,
    ...toTargetColumns(target),
    desired: records,
  }),
  toDecision: toCommitDecision,
}

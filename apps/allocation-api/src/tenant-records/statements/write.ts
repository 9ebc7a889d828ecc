import type { Target } from '@pool/contract'
import {
  hasRecordsIn,
  IS_LIVE,
  insertHistory,
  isInTime,
  isRowOf,
  type NameRequest,
  type NameStatement,
  requests,
  setDesiredRecords,
} from '../../allocation/sql.ts'
import type { RecordSet } from '../../dns/domain/rrset.ts'
import { targetOf } from '../../dns/domain/target.ts'
import { toHex } from '../../idempotency/idempotency.ts'
import type { StoredRecords } from '../../records/domain/stored.ts'
import { IS_UNEXPIRED, revise } from '../sql.ts'

/** The records of an active name that were decided on what `expected` says of it. */
export interface WriteRequest extends NameRequest {
  readonly expected: {
    /** SHA-256 of the token of the reservation. */
    readonly reservationHash: Buffer
    readonly revision: number
    readonly target: Target
  }
  /** The token that permits the write; null: the service, or an operator. */
  readonly tokenDigest: Buffer | null
  readonly records: StoredRecords
  /** Unix milliseconds; null: they stay as they are until somebody changes them. */
  readonly dueAt: number | null
  /** Null: as they are. */
  readonly desired: readonly RecordSet[] | null
  /** For the history; null: no entry. */
  readonly detail: string | null
}

interface WriteRow {
  readonly outcome: 'changed' | 'stale'
  readonly version: number | null
}

/** `stale`: the name is not as expected; decide again. `version`: of the new desired records; null: they are the same. */
export type WriteDecision = { readonly kind: 'changed'; readonly version: number | null } | { readonly kind: 'stale' }

/**
 *   input      the requests
 *   locked     the requests with the locked name, and whether it and its token are as expected
 *   updated    the names with their new revision
 *   revised    their records
 *   used       the day of the last use of their tokens
 *   published  those with other desired records
 *   desired    sets these
 *   history    'records-changed' for those with other records
 */
const TEXT = `
  with input as (
      ${requests('reservation_hash bytea, expected_revision bigint, expected_target jsonb, token_digest bytea, records jsonb, due_ms float8, desired jsonb, detail text')}
    ),
    locked as (
      select input.*, coalesce(name.outcome, 'stale') as outcome
      from input left join lateral (
        select case
            when a.state = 'active' and a.token_hash = input.reservation_hash and a.records_revision = input.expected_revision
              and ${targetOf('a')} = expected_target and (input.token_digest is null or exists (
                select from record_tokens k where k.token_digest = input.token_digest and ${IS_UNEXPIRED}))
            then 'changed' else 'stale'
          end as outcome
        from pool_allocations a where ${isRowOf('input')} and ${IS_LIVE} limit 1
        for update
      ) name on true
    ),
    updated as (
      update pool_allocations a set records_revision = a.records_revision + 1
      from locked where locked.outcome = 'changed' and ${isRowOf('locked')}
      returning a.*, position, token_digest, records, to_timestamp(due_ms / 1000) as due_at, desired, detail, actor, address,
        request_id
    ),
    revised as (${revise('updated')}),
    used as (
      update record_tokens k set last_used_on = (statement_timestamp() at time zone 'UTC')::date
      from updated where k.token_digest = updated.token_digest
        and k.last_used_on is distinct from (statement_timestamp() at time zone 'UTC')::date
      returning 1
    ),
    published as (select * from updated where desired is not null),
    desired as (${setDesiredRecords('published', 'same')}),
    history as (
      ${insertHistory('updated where detail is not null order by position', `'records-changed', 'active', 'active'`, {
        detail: 'detail',
      })}
    )
  select locked.position, is_new as "isNew", outcome, desired.version
  from locked left join updated a on a.position = locked.position left join desired on ${hasRecordsIn('desired')}
  where ${isInTime('updated', 'revised', 'used', 'desired', 'history')}`

/** Sets the records of a tenant, and the desired records of the name with them. */
export const writeStatement: NameStatement<WriteRequest, WriteRow, WriteDecision> = {
  text: TEXT,
  toColumns: ({ expected, tokenDigest, records, dueAt, desired, detail }) => ({
    reservation_hash: toHex(expected.reservationHash),
    expected_revision: expected.revision,
    expected_target: expected.target,
    token_digest: tokenDigest && toHex(tokenDigest),
    records,
    due_ms: dueAt,
    desired,
    detail,
  }),
  toDecision: ({ outcome, version }) => (outcome === 'changed' ? { kind: outcome, version } : { kind: outcome }),
}
